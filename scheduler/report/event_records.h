// The records of TensorBoard's event files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace hdps {

inline constexpr char kTensorboardHelp[] =
    "Also write the curves of the run to OUT/tensorboard, for TensorBoard";

// Errors: kInvalidArgument names the packages that this build lacks. Without them no other function
// here may be called.
Status CanWriteEvents();

// A point of a curve.
struct EventValue {
  std::string tag;               // Name of the curve; what stands before its first '/' is a group.
  std::string_view description;  // A sentence about the curve.
  double value = 0;
};

// Each returns one framed record: the payload's length as a little-endian uint64, the masked CRC32C
// of these 8 bytes, the payload, and its masked CRC32C. A CRC is masked by a rotation to the right
// by 15 and adding 0xa282ead8. `time`: seconds since 1970.

// The first record of a file.
std::string VersionRecord(double time);
// Tells a reader to drop the points of `step` and of later ones, because they are trained again.
std::string SessionRecord(double time, Clock step);
std::string ValuesRecord(double time, Clock step, const std::vector<EventValue>& values);
// A text in Markdown.
std::string TextRecord(double time, const std::string& tag, const std::string& markdown);

}  // namespace hdps
