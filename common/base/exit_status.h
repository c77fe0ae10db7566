// Exit statuses of the processes, and the errors that lead to each.
#pragma once

#include <string>

#include "common/base/status.h"

namespace hdps {

inline constexpr int kExitDone = 0;
inline constexpr int kExitMistaken = 2;  // The operator is mistaken, and was told what is right.
inline constexpr int kExitFailed = 3;    // The world failed beyond what the job survives.

// Maps an error code to the exit status. kCancelled is an end that was asked for, so it counts as
// done.
inline int ExitStatusOf(Code code) {
  switch (code) {
    case Code::kOk:
    case Code::kCancelled:
      return kExitDone;
    case Code::kInvalidArgument:
    case Code::kNotFound:
      return kExitMistaken;
    case Code::kTimeout:
    case Code::kUnavailable:
    case Code::kStaleView:
    case Code::kResourceExhausted:
    case Code::kCorruption:
    case Code::kIoError:
      return kExitFailed;
  }
  return kExitFailed;
}

// Is true if a new process may succeed where one failed with `code`, because neither the operator
// nor the data is at fault.
inline bool RestartMayHelp(Code code) {
  return code == Code::kTimeout || code == Code::kUnavailable || code == Code::kStaleView ||
         code == Code::kResourceExhausted || code == Code::kIoError;
}

// The end of a process: its exit status and, for people, the reason.
struct ProcessEnd {
  int status = kExitDone;
  std::string reason;
};

// Returns the error that ends a process in the same way; ok for kExitDone.
inline Status StatusOf(const ProcessEnd& end) {
  if (end.status == kExitDone) return Status();
  const bool mistaken = end.status == kExitMistaken;
  return Status(mistaken ? Code::kInvalidArgument : Code::kUnavailable, end.reason);
}

}  // namespace hdps
