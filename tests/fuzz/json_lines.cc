// Fuzzes JSON lines: with any bytes, each line is a row or a bad row, and the same by both parsers.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/record_check.h"

namespace hdps::fuzz {
namespace {

void CheckBothParsers(const DataSpec& data, std::string_view record) {
  CellLineWriter line, by_events;
  const bool failed = NewJsonCells(data, /*labels_read=*/true)->Write(record, &line).has_value();
  const bool failed_by_events =
      NewJsonEventCells(data, /*labels_read=*/true)->Write(record, &by_events).has_value();
  CHECK_EQ(failed, failed_by_events);
  CHECK(std::string_view(line.data(), line.size()) ==
        std::string_view(by_events.data(), by_events.size()));
}

Verdict RunJson(std::string_view bytes) {
  const DataSpec data = RecordSpec(DataFormat::kJsonl);
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', at), bytes.size());
    CheckRecord(data, bytes.substr(at, end - at));
    CheckBothParsers(data, bytes.substr(at, end - at));
    at = end + 1;
  }
  return ReadRecords(data, bytes);
}

std::vector<std::string> JsonSeeds() {
  return {"{\"y\": 1, \"x\": 2.5, \"c\": \"a\\u00e9\", \"t\": [\"a\", null, 3]}\n",
          "{\"t\": [], \"n\": {\"a\": [1, {}]}, \"y\": false, \"c\": -5}\r\n\n{\"y\": 1e0}",
          "{\"y\": 1}\n{\"y\": true, \"c\": 18446744073709551615, \"x\": null}\nbad\n"};
}

const AddTarget json_lines({"json_lines", RunJson, JsonSeeds});

}  // namespace
}  // namespace hdps::fuzz
