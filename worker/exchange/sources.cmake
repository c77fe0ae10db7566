# Rows and gradients to and from the servers.
add_layer(hdps_worker_exchange
  SOURCES exchange/key_split.cc exchange/ps_client.cc
  HEADERS exchange/key_split.h exchange/ps_client.h exchange/server_request.h
  DEPENDS hdps_common hdps_kernels hdps_embedding
  LIBRARIES glog::glog)
