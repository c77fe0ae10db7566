// Names of the error codes.
#include "common/base/status.h"

namespace hdps {

const char* CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kTimeout:
      return "timeout";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kStaleView:
      return "stale view";
    case Code::kResourceExhausted:
      return "resource exhausted";
    case Code::kNotFound:
      return "not found";
    case Code::kCorruption:
      return "corruption";
    case Code::kIoError:
      return "io error";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace hdps
