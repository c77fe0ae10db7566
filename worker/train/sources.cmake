# The step, its evaluation, and the worker's role.
add_layer(hdps_worker_train
  SOURCES train/worker_node.cc
  HEADERS train/compute_port.h train/worker_node.h
  DEPENDS hdps_worker_exchange hdps_worker_model hdps_worker_data hdps_embedding hdps_kernels
          hdps_common
  LIBRARIES glog::glog)
