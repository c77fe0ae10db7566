// Fuzzes TFRecord files: with any bytes, a file is rows, bad rows and an error. In half of the
// inputs records have the right checksums.
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/record_check.h"
#include "tests/worker/data/records/example_maker.h"

namespace hdps::fuzz {
namespace {

// After the first byte come records, each behind a byte of its length, or a file as it is.
Verdict RunTfrecord(std::string_view bytes) {
  Input input(bytes);
  const DataSpec data = RecordSpec(DataFormat::kTfrecord);
  if (!TakeChecksumRepair(input)) return ReadRecords(data, input.TakeRest());
  std::string file;
  while (!input.empty()) {
    const std::string_view record = input.TakeBytes(input.Take());
    CheckRecord(data, record);
    file += Framed(record);
  }
  return ReadRecords(data, file);
}

std::string GoodExample() {
  return ExampleOf({{"y", IntegerFeature({1})},
                    {"x", FloatFeature({2.5f})},
                    {"c", TextFeature({"a"})},
                    {"t", IntegerFeature({1, 2}, /*packed=*/false)}});
}

std::vector<std::string> TfrecordSeeds() {
  const std::string example = GoodExample();
  const std::string record = static_cast<char>(example.size()) + example;
  return {'\1' + record + record, '\0' + Framed(example) + Framed(example)};
}

const AddTarget tfrecord({"tfrecord", RunTfrecord, TfrecordSeeds});

}  // namespace
}  // namespace hdps::fuzz
