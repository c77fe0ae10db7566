// Lists what a record has, for programs that look at files without a job.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hdps {

// A column of one record.
struct RecordField {
  std::string name;
  bool list = false;      // It has several values.
  bool fraction = false;  // Its values are floating-point numbers.
  bool other = false;     // Its type is not read.
};

// Returns the features of a tf.train.Example that have values; none if the bytes are none.
std::vector<RecordField> FieldsOfExample(std::string_view record);
// Returns the members of a JSON object that are not null; none if the line is none.
std::vector<RecordField> FieldsOfJson(std::string_view line);
bool IsJsonObject(std::string_view line);

}  // namespace hdps
