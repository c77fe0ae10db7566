# Paths are taken from worker/, whose CMakeLists.txt includes this file.
add_layer(hdps_worker_model
  SOURCES model/dense_layers.cc model/dense_tensors.cc model/describe.cc model/feature_list.cc
          model/find_keys.cc model/first_layer.cc model/graph.cc model/graph_model.cc model/input_layers.cc
          model/interaction_layers.cc model/joining_layers.cc model/layer.cc
  HEADERS model/describe.h model/feature_list.h model/first_layer.h model/graph.h model/layer.h model/model.h
  DEPENDS hdps_worker_data hdps_kernels
  LIBRARIES glog::glog)
