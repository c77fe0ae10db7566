# The step, its evaluation, and the worker's role.
add_layer(hdps_worker_train
  SOURCES train/ahead_choice.cc train/dense_state.cc train/device_cache.cc train/evaluation.cc train/hot_rows.cc
          train/hot_split.cc train/node_channel.cc train/row_gather.cc train/row_transfer.cc
          train/stage.cc train/step_parts.cc train/step_pipeline.cc train/step_runner.cc
          train/step_window.cc train/trainer.cc train/worker_node.cc train/worker_process.cc
  HEADERS train/ahead_choice.h train/compute_port.h train/dense_state.h train/device_cache.h train/evaluation.h
          train/hot_rows.h train/hot_split.h train/node_channel.h train/row_gather.h
          train/row_transfer.h train/stage.h train/step_parts.h train/step_pipeline.h
          train/step_report.h train/step_runner.h train/step_window.h train/trainer.h
          train/worker_node.h train/worker_process.h
  DEPENDS hdps_worker_cache hdps_worker_exchange hdps_worker_model hdps_worker_data hdps_embedding hdps_kernels
          hdps_common
  LIBRARIES glog::glog)

add_executable(hdps-worker train/worker_main.cc)
target_link_libraries(hdps-worker PRIVATE hdps_worker_train hdps_common gflags glog::glog)
