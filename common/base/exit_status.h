// What a process says with its exit status, and which errors end it with which.
#pragma once

#include <string>

#include "common/base/status.h"

namespace hdps {

inline constexpr int kExitDone = 0;
inline constexpr int kExitMistaken = 2;  // The operator is mistaken, and was told what is right.
inline constexpr int kExitFailed = 3;    // The world failed beyond what the job survives.

// The one rule from errors to exit statuses. kCancelled is an end that was asked for.
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

// Whether another process in the place of one that failed like this may do better: neither the
// operator nor the data is to blame.
inline bool OfOneProcess(Code code) {
  return code == Code::kTimeout || code == Code::kUnavailable || code == Code::kStaleView ||
         code == Code::kResourceExhausted || code == Code::kIoError;
}

// How a process ended: its exit status and, for people, why.
struct ProcessEnd {
  int status = kExitDone;
  std::string reason;
};

// The error that ends a process in the same way; ok for kExitDone.
inline Status StatusOf(const ProcessEnd& end) {
  if (end.status == kExitDone) return Status();
  const bool mistaken = end.status == kExitMistaken;
  return Status(mistaken ? Code::kInvalidArgument : Code::kUnavailable, end.reason);
}

}  // namespace hdps
