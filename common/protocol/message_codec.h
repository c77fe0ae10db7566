// What the halves of the message codec share: how a struct becomes a frame, and how a FlatBuffer
// that nobody has to trust becomes a struct again. Included by *_messages.cc only.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol/messages.h"
#include "messages_generated.h"

namespace hdps {

// No text is longer; what is written for people is cut to this length by the sender.
inline constexpr size_t kTextBytesMax = 64 << 10;

// Takes strings and vectors out of a verified envelope and remembers the first broken rule.
//
// Invariant: all that was taken is together no longer than the envelope. Many offsets may point to
// one string, so without this a small envelope could ask for gigabytes.
class EnvelopeReader {
 public:
  explicit EnvelopeReader(const Frame& frame) : frame_(frame), left_(frame.envelope.size()) {}

  // `rule` as it ought to be: "num_keys sum to the length of keys".
  void Require(bool holds, const char* rule) {
    if (!holds && broken_ == nullptr) broken_ = rule;
  }
  const char* broken() const { return broken_; }

  std::string Text(const flatbuffers::String* text) {
    if (text == nullptr || !Take(text->size(), 1, kTextBytesMax)) return {};
    return text->str();
  }
  std::vector<uint32_t> Numbers(const flatbuffers::Vector<uint32_t>* numbers, size_t count_max) {
    if (numbers == nullptr || !Take(numbers->size(), sizeof(uint32_t), count_max)) return {};
    return {numbers->begin(), numbers->end()};
  }
  // How many tables to read from a vector of them; 0 when it is absent or too long.
  template <typename Table>
  uint32_t Count(const flatbuffers::Vector<flatbuffers::Offset<Table>>* tables) {
    if (tables == nullptr || !Take(tables->size(), sizeof(uint32_t), SIZE_MAX)) return 0;
    return tables->size();
  }
  template <typename Enum>
  Enum Enumerator(uint8_t value, Enum last) {
    Require(value <= static_cast<uint8_t>(last), "enumerators are in range");
    return static_cast<Enum>(std::min(value, static_cast<uint8_t>(last)));
  }
  const Buffer& Section(size_t i) const { return frame_.sections[i]; }

 private:
  bool Take(size_t count, size_t item_bytes, size_t count_max) {
    const bool fits = count <= count_max && count <= left_ / item_bytes;
    Require(fits, "strings and vectors are within their limits");
    if (fits) left_ -= count * item_bytes;
    return fits;
  }

  const Frame& frame_;
  size_t left_;  // Bytes of the envelope not yet taken.
  const char* broken_ = nullptr;
};

// Text for people: cut rather than refused.
inline flatbuffers::Offset<flatbuffers::String> PackText(flatbuffers::FlatBufferBuilder& builder,
                                                         const std::string& text) {
  return builder.CreateString(text.data(), std::min(text.size(), kTextBytesMax));
}
// Text that means something to the program; longer than kTextBytesMax is a bug of the caller.
flatbuffers::Offset<flatbuffers::String> PackName(flatbuffers::FlatBufferBuilder& builder,
                                                  const std::string& name);

// The sections of a message, in the order of the wire. Messages that have some overload both.
template <typename Message>
std::vector<Buffer> SectionsOf(const Message&) {
  return {};
}
template <typename Message>
inline constexpr size_t kNumSections = 0;
template <>
inline constexpr size_t kNumSections<CommandDone> = 2;
template <>
inline constexpr size_t kNumSections<PullRequest> = 1;
template <>
inline constexpr size_t kNumSections<PullReply> = 2;
template <>
inline constexpr size_t kNumSections<PushRequest> = 2;
template <>
inline constexpr size_t kNumSections<StoreRequest> = 2;

// The FlatBuffers table that Pack(builder, message) makes of a message.
template <typename Offset>
struct OffsetTarget;
template <typename Table>
struct OffsetTarget<flatbuffers::Offset<Table>> {
  using type = Table;
};
template <typename Message>
using TableOf = typename OffsetTarget<decltype(Pack(std::declval<flatbuffers::FlatBufferBuilder&>(),
                                                    std::declval<const Message&>()))>::type;

// kCorruption that names the message and the rule it breaks.
Status BrokenMessage(MessageKind kind, const char* rule);
// Kind, number of sections and length of the envelope are as they must be.
Status CheckShape(const Frame& frame, MessageKind kind, size_t num_sections);
// Limits of the verifier, chosen so that its work is linear in the length of the envelope.
flatbuffers::Verifier EnvelopeVerifier(const Buffer& envelope);

// ---- The two functions of common/protocol/messages.h, over Pack() and Unpack() of each message
// ----------

template <typename Message>
Frame EncodeMessage(const Message& message) {
  flatbuffers::FlatBufferBuilder builder(512);
  builder.Finish(Pack(builder, message));
  Frame frame;
  frame.header.kind = static_cast<uint16_t>(Message::kKind);
  // The builder's bytes may begin at any multiple of 4; a Buffer begins at a multiple of 8.
  frame.envelope =
      Buffer::CopyOf(std::span<const uint8_t>(builder.GetBufferPointer(), builder.GetSize()));
  frame.sections = SectionsOf(message);
  return frame;
}

template <typename Message>
Status DecodeMessage(const Frame& frame, Message* message) {
  HDPS_RETURN_IF_ERROR(CheckShape(frame, Message::kKind, kNumSections<Message>));
  flatbuffers::Verifier verifier = EnvelopeVerifier(frame.envelope);
  if (!verifier.VerifyBuffer<TableOf<Message>>(nullptr)) {
    return BrokenMessage(Message::kKind, "the envelope is a valid FlatBuffer");
  }
  EnvelopeReader reader(frame);
  Unpack(*flatbuffers::GetRoot<TableOf<Message>>(frame.envelope.data()), reader, message);
  if (reader.broken() != nullptr) return BrokenMessage(Message::kKind, reader.broken());
  return Status();
}

}  // namespace hdps
