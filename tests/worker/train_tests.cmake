# Collectives, the parts of a step, the dense state.
add_layer_test(collective_test
  SOURCES collective_test.cc
  DEPENDS hdps_worker_exchange hdps_common
  KIND unit_concurrent)
