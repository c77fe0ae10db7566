// Encodes messages to frames, and decodes untrusted FlatBuffers to messages, both from one
// description of the message. Only *_messages.cc and messages.cc include this file.
//
// The description is the message's Layout: the table of messages.fbs, its fields in the order of
// that table, the sections behind them, and the rules that a receiver may rely on.
//
//   template <>
//   struct Layout<KvGet> {
//     using Table = wire::KvGet;
//     static void Describe(auto& fields, auto& message) { fields.Name(message.key); }
//     static void Check(const KvGet& message, Rules& rules);  // Optional.
//   };
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/outside_text.h"
#include "common/base/status.h"
#include "common/net/frame.h"
#include "common/protocol/activity.h"
#include "common/protocol/message_frames.h"
#include "messages_generated.h"

namespace hdps {

enum class MessageKind : uint16_t;

// Limit on the length of a vector of numbers.
inline constexpr size_t kNumbersMax = 1u << 16;

// Keeps the first rule that a message breaks.
class Rules {
 public:
  // `rule` states what should hold: "num_keys sum to the length of keys".
  void Require(bool holds, const char* rule) {
    if (!holds && broken_ == nullptr) broken_ = rule;
  }
  const char* broken() const { return broken_; }

 private:
  const char* broken_ = nullptr;
};

template <typename Message>
struct Layout;

// ---- Numbers of a message as a table holds them. Zeros are left out.

inline uint8_t Scalar(bool value) { return value; }
template <std::integral Number>
requires(!std::same_as<Number, bool>) Number Scalar(Number value) { return value; }
inline double Scalar(double value) { return value; }
template <typename Tag, typename Rep>
Rep Scalar(Id<Tag, Rep> id) {
  return id.value;
}
template <typename Number>
void SetScalar(Number& to, decltype(Scalar(Number())) value) {
  to = Number{static_cast<Number>(value)};
}
template <typename Tag, typename Rep>
void SetScalar(Id<Tag, Rep>& to, Rep value) {
  to.value = value;
}

// Counts the fields of a table from its first one.
class FieldCounter {
 protected:
  flatbuffers::voffset_t Next() { return flatbuffers::FieldIndexToOffset(next_++); }

 private:
  flatbuffers::voffset_t next_ = 0;
};

// ---- Writing: first the objects that a table points to, then the table.

template <typename Message>
flatbuffers::Offset<void> PackTable(flatbuffers::FlatBufferBuilder& builder,
                                    const Message& message);

// Packs text with a meaning for the program. Text longer than kTextBytesMax is a bug of the caller.
flatbuffers::Offset<flatbuffers::String> PackName(flatbuffers::FlatBufferBuilder& builder,
                                                  const std::string& name);

// Writes the strings, vectors and inner tables of a message, in order.
class ChildWriter {
 public:
  explicit ChildWriter(flatbuffers::FlatBufferBuilder& builder) : builder_(builder) {}

  void Number(const auto&) {}
  void Enumerator(const auto&, auto) {}
  void Kind(MessageKind) {}
  void Name(const std::string& name) { Keep(PackName(builder_, name)); }
  // Packs text for people, which is cut if it is too long.
  void Text(const std::string& text) {
    Keep(builder_.CreateString(text.data(), std::min(text.size(), kTextBytesMax)));
  }
  template <typename Number>
  void Numbers(const std::vector<Number>& numbers) {
    std::vector<decltype(Scalar(Number()))> values;
    values.reserve(numbers.size());
    for (const Number& number : numbers) values.push_back(Scalar(number));
    Keep(builder_.CreateVector(values));
  }
  template <typename Inner>
  void Table(const Inner& inner) {
    Keep(inner == Inner() ? flatbuffers::Offset<void>() : PackTable(builder_, inner));
  }
  template <typename Inner>
  void Tables(const std::vector<Inner>& inner) {
    std::vector<flatbuffers::Offset<void>> offsets;
    offsets.reserve(inner.size());
    for (const Inner& one : inner) offsets.push_back(PackTable(builder_, one));
    Keep(builder_.CreateVector(offsets));
  }
  void Section(const Buffer&) {}
  void CopiedSection(const Buffer&) {}

  const std::vector<flatbuffers::Offset<void>>& offsets() const { return offsets_; }

 private:
  template <typename T>
  void Keep(flatbuffers::Offset<T> offset) {
    offsets_.emplace_back(offset.o);
  }

  flatbuffers::FlatBufferBuilder& builder_;
  std::vector<flatbuffers::Offset<void>> offsets_;
};

// Writes the table itself after its children.
class FieldWriter : private FieldCounter {
 public:
  FieldWriter(flatbuffers::FlatBufferBuilder& builder, const ChildWriter& children)
      : builder_(builder), child_(children.offsets().begin()), start_(builder.StartTable()) {}

  template <typename N>
  void Number(const N& number) {
    const auto value = Scalar(number);
    builder_.AddElement(Next(), value, decltype(value)(0));
  }
  template <typename Enum>
  void Enumerator(Enum value, Enum) {
    Number(static_cast<uint8_t>(value));
  }
  void Kind(MessageKind kind) { Number(static_cast<uint16_t>(kind)); }
  void Name(const std::string&) { Child(); }
  void Text(const std::string&) { Child(); }
  void Numbers(const auto&) { Child(); }
  void Table(const auto&) { Child(); }
  void Tables(const auto&) { Child(); }
  void Section(const Buffer&) {}
  void CopiedSection(const Buffer&) {}

  flatbuffers::Offset<void> Finish() { return builder_.EndTable(start_); }

 private:
  void Child() { builder_.AddOffset(Next(), *child_++); }

  flatbuffers::FlatBufferBuilder& builder_;
  std::vector<flatbuffers::Offset<void>>::const_iterator child_;
  const flatbuffers::uoffset_t start_;
};

// Collects the sections of a message in wire order.
class SectionList {
 public:
  void Number(const auto&) {}
  void Enumerator(const auto&, auto) {}
  void Kind(MessageKind) {}
  void Name(const std::string&) {}
  void Text(const std::string&) {}
  void Numbers(const auto&) {}
  void Table(const auto&) {}
  void Tables(const auto&) {}
  void Section(const Buffer& section) { sections_.push_back(section); }
  void CopiedSection(const Buffer& section) { sections_.push_back(section); }
  std::vector<Buffer> Take() { return std::move(sections_); }

 private:
  std::vector<Buffer> sections_;
};

template <typename Message>
flatbuffers::Offset<void> PackTable(flatbuffers::FlatBufferBuilder& builder,
                                    const Message& message) {
  ChildWriter children(builder);
  Layout<Message>::Describe(children, message);
  FieldWriter fields(builder, children);
  Layout<Message>::Describe(fields, message);
  return fields.Finish();
}

// ---- Reading from an envelope that is a valid FlatBuffer.

// Limits what is taken out of an envelope.
//
// Invariant: everything taken is together no longer than the envelope. Without this, a small
// envelope could ask for gigabytes, because many offsets may point to one string.
class EnvelopeBudget : public Rules {
 public:
  explicit EnvelopeBudget(size_t bytes) : left_(bytes) {}
  bool Spend(size_t count, size_t item_bytes, size_t count_max) {
    const bool fits = count <= count_max && count <= left_ / item_bytes;
    Require(fits, "strings and vectors are within their limits");
    if (fits) left_ -= count * item_bytes;
    return fits;
  }

 private:
  size_t left_;
};

template <typename Message>
void UnpackTable(const flatbuffers::Table& table, const Frame& frame, EnvelopeBudget& budget,
                 Message* message);

// Reads the fields of one table, and the sections of its frame.
class FieldReader : private FieldCounter {
 public:
  FieldReader(const flatbuffers::Table& table, const Frame& frame, EnvelopeBudget& budget)
      : table_(table), frame_(frame), budget_(budget) {}

  template <typename N>
  void Number(N& number) {
    using Value = decltype(Scalar(number));
    SetScalar(number, table_.GetField<Value>(Next(), Value(0)));
  }
  template <typename Enum>
  void Enumerator(Enum& value, Enum last) {
    const auto read = table_.GetField<uint8_t>(Next(), 0);
    budget_.Require(read <= static_cast<uint8_t>(last), "enumerators are in range");
    value = static_cast<Enum>(std::min(read, static_cast<uint8_t>(last)));
  }
  void Kind(MessageKind& kind) {
    kind = static_cast<MessageKind>(table_.GetField<uint16_t>(Next(), 0));
  }
  void Name(std::string& name) {
    const auto* from = table_.GetPointer<const flatbuffers::String*>(Next());
    const bool fits = from != nullptr && budget_.Spend(from->size(), 1, kTextBytesMax);
    name = fits ? from->str() : std::string();
  }
  // All text for people is escaped here before it reaches a log or a terminal.
  void Text(std::string& text) {
    Name(text);
    text = EscapeUntrusted(text);
  }
  template <typename N>
  void Numbers(std::vector<N>& numbers) {
    numbers.clear();
    using Value = decltype(Scalar(N()));
    const auto* from = table_.GetPointer<const flatbuffers::Vector<Value>*>(Next());
    if (from == nullptr || !budget_.Spend(from->size(), sizeof(Value), kNumbersMax)) return;
    numbers.reserve(from->size());
    // The verifier does not check that the values of a damaged frame are aligned.
    for (uint32_t i = 0; i < from->size(); ++i) {
      Value value;
      std::memcpy(&value, from->Data() + i * sizeof(Value), sizeof(Value));
      numbers.push_back(N{flatbuffers::EndianScalar(value)});
    }
  }
  template <typename Inner>
  void Table(Inner& inner) {
    inner = Inner();
    const auto* from = table_.GetPointer<const flatbuffers::Table*>(Next());
    if (from != nullptr) UnpackTable(*from, frame_, budget_, &inner);
  }
  template <typename Inner>
  void Tables(std::vector<Inner>& inner) {
    using Vector = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::Table>>;
    inner.clear();
    const auto* from = table_.GetPointer<const Vector*>(Next());
    if (from == nullptr || !budget_.Spend(from->size(), sizeof(uint32_t), SIZE_MAX)) return;
    inner.resize(from->size());
    for (uint32_t i = 0; i < inner.size(); ++i) {
      UnpackTable(*from->Get(i), frame_, budget_, &inner[i]);
    }
  }
  void Section(Buffer& section) { section = frame_.sections[next_section_++]; }
  // Copies a section whose numbers become addresses, because a process that shares the section's
  // memory could change them after the check.
  void CopiedSection(Buffer& section) {
    section = Buffer::CopyOf(frame_.sections[next_section_++].bytes());
  }

 private:
  const flatbuffers::Table& table_;
  const Frame& frame_;
  EnvelopeBudget& budget_;
  size_t next_section_ = 0;
};

template <typename Message>
void UnpackTable(const flatbuffers::Table& table, const Frame& frame, EnvelopeBudget& budget,
                 Message* message) {
  FieldReader fields(table, frame, budget);
  Layout<Message>::Describe(fields, *message);
  if constexpr (requires { Layout<Message>::Check(*message, budget); }) {
    Layout<Message>::Check(*message, budget);
  }
}

// Returns kCorruption with the message and the rule that it breaks.
Status BrokenMessage(MessageKind kind, const char* rule);
// Checks kind, number of sections and length of the envelope.
Status CheckShape(const Frame& frame, MessageKind kind, size_t num_sections);
// Returns a verifier with limits that make its work linear in the length of the envelope.
flatbuffers::Verifier EnvelopeVerifier(const Buffer& envelope);

// ---- The two functions of common/protocol/message_frames.h.

template <typename Message>
std::vector<Buffer> SectionsOf(const Message& message) {
  SectionList sections;
  Layout<Message>::Describe(sections, message);
  return sections.Take();
}

template <typename Message>
Frame EncodeMessage(const Message& message) {
  flatbuffers::FlatBufferBuilder builder(512);
  builder.Finish(PackTable(builder, message));
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
  static const size_t num_sections = SectionsOf(Message()).size();
  HDPS_RETURN_IF_ERROR(CheckShape(frame, Message::kKind, num_sections));
  flatbuffers::Verifier verifier = EnvelopeVerifier(frame.envelope);
  if (!verifier.VerifyBuffer<typename Layout<Message>::Table>(nullptr)) {
    return BrokenMessage(Message::kKind, "the envelope is a valid FlatBuffer");
  }
  EnvelopeBudget budget(frame.envelope.size());
  UnpackTable(*flatbuffers::GetRoot<flatbuffers::Table>(frame.envelope.data()), frame, budget,
              message);
  if (budget.broken() != nullptr) return BrokenMessage(Message::kKind, budget.broken());
  return Status();
}

// Instantiates the codec of a message that has a Layout, and checks its kind against messages.fbs.
#define HDPS_MESSAGE(Message)                                                     \
  static_assert(static_cast<int>(Message::kKind) == wire::MessageKind_##Message); \
  template Frame EncodeMessage(const Message&);                                   \
  template Status DecodeMessage(const Frame&, Message*)

// ---- Parts of several messages: activities.

template <>
struct Layout<Awaited> {
  static void Describe(auto& fields, auto& awaited) {
    fields.Number(awaited.peer);
    fields.Number(awaited.for_ms);
  }
};

template <>
struct Layout<Activity> {
  static void Describe(auto& fields, auto& activity) {
    fields.Text(activity.stage);
    fields.Text(activity.subject);
    fields.Enumerator(activity.wait_reason, WaitReason::kRows);
    fields.Number(activity.for_ms);
    fields.Tables(activity.awaited);
  }
  static void Check(const Activity& activity, Rules& rules) {
    rules.Require(activity.awaited.size() <= kAwaitedMax, "a member names few that it waits for");
  }
};

}  // namespace hdps
