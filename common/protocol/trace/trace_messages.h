// Messages about traces of a running job: who asks, and what members have recorded.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/protocol/message_kind.h"
#include "common/telemetry/span_recorder.h"

namespace hdps {

enum class TracePhase : uint8_t;

inline constexpr uint32_t kTraceStepsMax = 200;

// Spans as a message carries them.
struct PackedSpans {
  Buffer spans;  // Array of Span.
  Buffer words;  // Their words, each followed by a newline.
};
PackedSpans Pack(const SpanPart& part);
// Errors: kCorruption if a span names a word that is not there.
Result<SpanPart> Unpack(const PackedSpans& packed);

// From a member: some of what it has recorded.
struct TracePart {
  static constexpr MessageKind kKind = MessageKind::kTracePart;
  uint64_t trace = 0;     // TraceOrder::trace.
  uint64_t left_out = 0;  // Spans that were not kept, so far.
  // The scheduler's clock less the member's, and by how much that may be wrong; -1: not known.
  int64_t offset_ns = 0, uncertainty_ns = -1;
  bool last = false;  // Nothing follows.
  PackedSpans packed = {};
};

// Asks for a trace of the next steps, or for the next part of the one with this number.
struct TraceRequest {
  static constexpr MessageKind kKind = MessageKind::kTraceRequest;
  uint64_t trace = 0;  // Drawn by the sender.
  uint32_t steps = 0;
  uint64_t part = 0;  // Number of the part; those before it have arrived.
};
struct TraceReply {
  static constexpr MessageKind kKind = MessageKind::kTraceReply;
  Code code = Code::kOk;
  std::string message;  // Why not; with kOk: what is missing, once the trace is whole.
  bool whole = false;   // No part is left or will come.
  Clock from = 0, until = 0;
  bool has_part = false;  // The rest is the part that was asked for.
  std::string member;
  uint64_t left_out = 0;
  int64_t offset_ns = 0, uncertainty_ns = -1;
  PackedSpans packed = {};
};

}  // namespace hdps
