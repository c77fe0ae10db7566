# Tests of worker/model.
add_library(hdps_model_fixture STATIC model_fixture.cc)
target_link_libraries(hdps_model_fixture PUBLIC hdps_worker_model PRIVATE glog::glog)
add_layer_test(worker_model_test KIND unit_concurrent
  SOURCES model_test.cc model_gradient_test.cc
  DEPENDS hdps_model_fixture)
add_layer_test(worker_model_cuda_test
  SOURCES model_cuda_test.cc
  DEPENDS hdps_model_fixture)
