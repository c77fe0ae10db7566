# NCCL is looked for when a job asks for it; only its header is needed here.
set(HDPS_NCCL_SOURCES "")
set(HDPS_NCCL_LIBRARIES "")
if(HDPS_WITH_CUDA AND NCCL_INCLUDE_DIR)
  set(HDPS_NCCL_SOURCES exchange/rank_sum.cu exchange/rank_sum.h)
  set(HDPS_NCCL_LIBRARIES CUDA::cudart_static ${CMAKE_DL_LIBS})
endif()
# Rows and gradients to and from the servers.
add_layer(hdps_worker_exchange
  SOURCES exchange/collective_choice.cc exchange/gloo_collective.cc exchange/key_split.cc
          exchange/local_collective.cc exchange/nccl_collective.cc exchange/ps_client.cc
          exchange/row_moves.cc exchange/split_requests.cc
          ${HDPS_NCCL_SOURCES}
  HEADERS exchange/collective.h exchange/key_split.h exchange/ps_client.h exchange/row_moves.h
          exchange/server_request.h
  DEPENDS hdps_common hdps_kernels hdps_embedding
  LIBRARIES glog::glog gloo ${HDPS_NCCL_LIBRARIES})
# Numbers of 16 bits are made here: loops that become vectors, as in kernels.
set_source_files_properties(exchange/row_moves.cc PROPERTIES
  COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3;-fno-math-errno;-fno-trapping-math>")
if(HDPS_NCCL_SOURCES)
  target_compile_definitions(hdps_worker_exchange PRIVATE HDPS_WITH_NCCL)
endif()
