// Errors that a correct program must expect and a caller can act on.
//
// A code exists only if some caller does something different on seeing it; what to do is written
// beside the code. A broken invariant is not a Status: it is a CHECK failure, and the process
// stops.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace hdps {

enum class Code : unsigned char {
  kOk,
  kTimeout,            // Send the same request again, under the same request id.
  kUnavailable,        // The peer is gone: wait for the scheduler's next view.
  kStaleView,          // Routed by an old shard map: take the newer one, split again, resend.
  kResourceExhausted,  // A bound was hit: stop sending until something drains.
  kNotFound,           // The requested item does not exist: the caller picks a default.
  kCorruption,         // Bytes failed their checksum or their rules: discard, use another copy.
  kIoError,            // The disk refused: abandon this checkpoint, keep training.
  kInvalidArgument,    // The operator or the sender is mistaken: report it, do not retry. Exit 2.
  kCancelled,          // Shutting down: unwind without a log line.
};

// The name of a code as logs and messages print it, "ok", "timeout", ...
const char* CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  // `message` says what was attempted, on what, and with which values. For kInvalidArgument it also
  // says what would be right.
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// Either a value or the reason there is none.
//
// Invariant: status().ok() exactly when a value is present.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: converts on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: converts on purpose

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

#define HDPS_CONCAT_INNER(a, b) a##b
#define HDPS_CONCAT(a, b) HDPS_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expr` is not ok.
#define HDPS_RETURN_IF_ERROR(expr) \
  if (::hdps::Status hdps_status_ = (expr); !hdps_status_.ok()) return hdps_status_

// Declares `lhs` as the value of the Result `expr`, or returns its status.
#define HDPS_ASSIGN_OR_RETURN(lhs, expr)                 \
  auto HDPS_CONCAT(hdps_result_, __LINE__) = (expr);     \
  if (!HDPS_CONCAT(hdps_result_, __LINE__).ok())         \
    return HDPS_CONCAT(hdps_result_, __LINE__).status(); \
  lhs = *std::move(HDPS_CONCAT(hdps_result_, __LINE__))

}  // namespace hdps
