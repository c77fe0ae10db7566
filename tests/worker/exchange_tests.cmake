# Tests of worker/exchange.
add_layer_test(exchange_test
  SOURCES key_split_test.cc narrow_values_test.cc in_pieces_test.cc ps_client_test.cc
  DEPENDS hdps_worker_exchange hdps_common glog::glog)
