// The layouts of the messages about traces, and the form of spans in them.
#include "common/protocol/trace/trace_messages.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "common/protocol/message_codec.h"

namespace hdps {

PackedSpans Pack(const SpanPart& part) {
  std::string words;
  for (const std::string& word : part.words) words += word + "\n";
  return {Buffer::CopyOf(std::span<const Span>(part.spans)),
          Buffer::CopyOf(std::as_bytes(std::span(words.data(), words.size())))};
}

Result<SpanPart> Unpack(const PackedSpans& packed) {
  SpanPart part;
  std::string_view rest(reinterpret_cast<const char*>(packed.words.data()), packed.words.size());
  for (size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
    part.words.push_back(EscapeUntrusted(rest.substr(0, end)));
    rest.remove_prefix(end + 1);
  }
  const std::span<const Span> spans = packed.spans.As<Span>();
  part.spans.assign(spans.begin(), spans.end());
  for (const Span& span : part.spans) {
    if (std::max(span.track, span.name) < part.words.size() && span.begin_ns <= span.end_ns) {
      continue;
    }
    return Status(Code::kCorruption, "a span that names a word which is not there, or ends early");
  }
  return part;
}

template <>
struct Layout<TracePart> {
  using Table = wire::TracePart;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.trace);
    fields.Number(message.left_out);
    fields.Number(message.offset_ns);
    fields.Number(message.uncertainty_ns);
    fields.Number(message.last);
    fields.CopiedSection(message.packed.spans);
    fields.CopiedSection(message.packed.words);
  }
};
HDPS_MESSAGE(TracePart);

template <>
struct Layout<TraceRequest> {
  using Table = wire::TraceRequest;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.trace);
    fields.Number(message.steps);
    fields.Number(message.part);
  }
};
HDPS_MESSAGE(TraceRequest);

template <>
struct Layout<TraceReply> {
  using Table = wire::TraceReply;
  static void Describe(auto& fields, auto& message) {
    fields.Enumerator(message.code, Code::kCancelled);
    fields.Text(message.message);
    fields.Number(message.whole);
    fields.Number(message.from);
    fields.Number(message.until);
    fields.Number(message.has_part);
    fields.Text(message.member);
    fields.Number(message.left_out);
    fields.Number(message.offset_ns);
    fields.Number(message.uncertainty_ns);
    fields.CopiedSection(message.packed.spans);
    fields.CopiedSection(message.packed.words);
  }
};
HDPS_MESSAGE(TraceReply);

}  // namespace hdps
