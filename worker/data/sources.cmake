# Paths are taken from worker/, whose CMakeLists.txt includes this file.
add_layer(hdps_worker_data
  SOURCES data/batch_reader.cc data/compressed_file.cc data/criteo_parser.cc data/csv_parser.cc
          data/derived_features.cc data/indexed_reader.cc data/label.cc data/libsvm_parser.cc
          data/line_index.cc data/line_reader.cc data/number.cc data/row.cc data/row_adder.cc
          data/row_fetcher.cc data/shuffle_window.cc data/synthetic_digits.cc
          data/synthetic_log.cc data/synthetic_teacher.cc
  HEADERS data/batch.h data/batch_reader.h data/compressed_file.h data/derived_features.h
          data/indexed_reader.h data/label.h data/line_index.h data/line_reader.h data/number.h
          data/parsers.h data/row.h data/row_adder.h data/row_fetcher.h
          data/shuffle_window.h data/synthetic_digits.h data/synthetic_log.h data/synthetic_teacher.h
          data/tab_scan.h data/zipf.h
  DEPENDS hdps_common
  LIBRARIES PkgConfig::ZLIB PkgConfig::ZSTD glog::glog)
