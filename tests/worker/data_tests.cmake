add_layer_test(data_test
  SOURCES batch_reader_test.cc compressed_file_test.cc hostile_input_test.cc line_reader_test.cc
          row_parser_test.cc shuffle_window_test.cc synthetic_test.cc data_fixture.cc
  DEPENDS hdps_worker_data hdps_common PkgConfig::ZLIB PkgConfig::ZSTD glog::glog)
