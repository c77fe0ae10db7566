// Walks the schema with the schema compiler's own library, and changes messages as JSON.
#include "tests/sim/extremes/extreme_messages.h"

#include <flatbuffers/idl.h>
#include <glog/logging.h>

#include <cstdio>
#include <limits>
#include <span>

#include "common/platform/file_system.h"

namespace hdps::sim {
namespace {

using flatbuffers::BaseType;
using flatbuffers::FieldDef;
using flatbuffers::StructDef;
using flatbuffers::Table;

constexpr char kNamespace[] = "hdps.wire.";
constexpr size_t kLongText = size_t{64} << 10, kLongList = 4096;

std::string ListOf(const std::string& element, size_t count) {
  std::string list = "[";
  for (size_t i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + element;
  return list + "]";
}

template <typename Number>
std::vector<std::string> ExtremesOf() {
  constexpr Number kMost = std::numeric_limits<Number>::max();
  std::vector<std::string> values = {"0", "1", std::to_string(kMost), std::to_string(kMost - 1)};
  if constexpr (sizeof(Number) == 8) values.push_back("9223372036854775806");
  if constexpr (std::numeric_limits<Number>::is_signed) {
    values.push_back("-1");
    values.push_back(std::to_string(std::numeric_limits<Number>::min()));
  }
  return values;
}

std::vector<std::string> ExtremesOf(BaseType type) {
  switch (type) {
    case flatbuffers::BASE_TYPE_BOOL:
      return {"false", "true"};
    case flatbuffers::BASE_TYPE_UCHAR:
      return ExtremesOf<uint8_t>();
    case flatbuffers::BASE_TYPE_USHORT:
      return ExtremesOf<uint16_t>();
    case flatbuffers::BASE_TYPE_INT:
      return ExtremesOf<int32_t>();
    case flatbuffers::BASE_TYPE_UINT:
      return ExtremesOf<uint32_t>();
    case flatbuffers::BASE_TYPE_LONG:
      return ExtremesOf<int64_t>();
    case flatbuffers::BASE_TYPE_ULONG:
      return ExtremesOf<uint64_t>();
    case flatbuffers::BASE_TYPE_FLOAT:
      return {"0", "-1", "nan", "inf", "-inf", "3.4e38"};
    case flatbuffers::BASE_TYPE_DOUBLE:
      return {"0", "-1", "nan", "inf", "-inf", "1.7e308"};
    case flatbuffers::BASE_TYPE_STRING:
      return {"", "\"" + std::string(kLongText, 'x') + "\""};
    default:
      return {""};
  }
}

bool IsTable(const FieldDef& field) {
  return field.value.type.base_type == flatbuffers::BASE_TYPE_STRUCT;
}
bool IsList(const FieldDef& field) {
  return field.value.type.base_type == flatbuffers::BASE_TYPE_VECTOR;
}
bool IsListOfTables(const FieldDef& field) {
  return IsList(field) && field.value.type.element == flatbuffers::BASE_TYPE_STRUCT;
}

void AddExtremes(const StructDef& table, const Extreme& above, std::vector<Extreme>* all) {
  for (const FieldDef* field : table.fields.vec) {
    Extreme extreme = above;
    extreme.path.push_back(field->name);
    std::vector<std::string> values = ExtremesOf(field->value.type.base_type);
    if (IsListOfTables(*field)) values.push_back(ListOf("{}", kLongList));
    if (IsList(*field) && !IsListOfTables(*field)) {
      for (const std::string& value : ExtremesOf(field->value.type.element)) {
        values.push_back(ListOf(value, 1));
        values.push_back(ListOf(value, kLongList));
      }
    }
    for (const std::string& value : values) {
      extreme.value = value;
      all->push_back(extreme);
    }
    if (IsTable(*field) || IsListOfTables(*field)) {
      AddExtremes(*field->value.type.struct_def, extreme, all);
    }
  }
}

template <typename Number>
std::string TextOf(Number number) {
  if constexpr (std::is_floating_point_v<Number>) {
    char text[40];
    std::snprintf(text, sizeof(text), "%.17g", static_cast<double>(number));
    return text;
  } else {
    return std::to_string(number);
  }
}

std::string ScalarText(const Table& table, const FieldDef& field) {
  const flatbuffers::voffset_t at = field.value.offset;
  switch (field.value.type.base_type) {
    case flatbuffers::BASE_TYPE_BOOL:
    case flatbuffers::BASE_TYPE_UCHAR:
      return TextOf(table.GetField<uint8_t>(at, 0));
    case flatbuffers::BASE_TYPE_USHORT:
      return TextOf(table.GetField<uint16_t>(at, 0));
    case flatbuffers::BASE_TYPE_INT:
      return TextOf(table.GetField<int32_t>(at, 0));
    case flatbuffers::BASE_TYPE_UINT:
      return TextOf(table.GetField<uint32_t>(at, 0));
    case flatbuffers::BASE_TYPE_LONG:
      return TextOf(table.GetField<int64_t>(at, 0));
    case flatbuffers::BASE_TYPE_ULONG:
      return TextOf(table.GetField<uint64_t>(at, 0));
    case flatbuffers::BASE_TYPE_FLOAT:
      return TextOf(table.GetField<float>(at, 0));
    case flatbuffers::BASE_TYPE_DOUBLE:
      return TextOf(table.GetField<double>(at, 0));
    default:
      LOG(FATAL) << "the schema has a type that is new here: " << field.name;
  }
}

std::string TableText(const Table* table, const StructDef& type, std::span<const std::string> path,
                      const std::string& value);

template <typename Number>
std::string ListText(const flatbuffers::Vector<Number>* numbers) {
  std::string list = "[";
  for (uint32_t i = 0; i < numbers->size(); ++i) {
    list += (i == 0 ? "" : ",") + std::to_string(numbers->Get(i));
  }
  return list + "]";
}

std::string FieldText(const Table* table, const FieldDef& field, std::span<const std::string> path,
                      const std::string& value) {
  const flatbuffers::voffset_t at = field.value.offset;
  const StructDef* const inner = field.value.type.struct_def;
  if (IsTable(field)) {
    const auto* const child = table == nullptr ? nullptr : table->GetPointer<const Table*>(at);
    return TableText(child, *inner, path, value);
  }
  if (IsListOfTables(field)) {
    using Tables = flatbuffers::Vector<flatbuffers::Offset<Table>>;
    const auto* const tables = table == nullptr ? nullptr : table->GetPointer<const Tables*>(at);
    const uint32_t size = tables == nullptr ? 0 : tables->size();
    std::string list = "[";
    for (uint32_t i = 0; i < size; ++i) {
      if (i > 0) list += ",";
      list += TableText(tables->Get(i), *inner, i == 0 ? path : path.subspan(0, 0), value);
    }
    if (size == 0 && !path.empty()) list += TableText(nullptr, *inner, path, value);
    return list + "]";
  }
  if (IsList(field)) {
    if (field.value.type.element == flatbuffers::BASE_TYPE_ULONG) {
      return ListText(table->GetPointer<const flatbuffers::Vector<uint64_t>*>(at));
    }
    if (field.value.type.element == flatbuffers::BASE_TYPE_LONG) {
      return ListText(table->GetPointer<const flatbuffers::Vector<int64_t>*>(at));
    }
    CHECK(field.value.type.element == flatbuffers::BASE_TYPE_UINT) << field.name;
    return ListText(table->GetPointer<const flatbuffers::Vector<uint32_t>*>(at));
  }
  if (field.value.type.base_type == flatbuffers::BASE_TYPE_STRING) {
    const auto* const text = table->GetPointer<const flatbuffers::String*>(at);
    std::string escaped;
    CHECK(flatbuffers::EscapeString(text->c_str(), text->size(), &escaped, true, false));
    return escaped;
  }
  return ScalarText(*table, field);
}

// Returns the table as JSON, with `value` at the end of `path`, or unchanged without a path.
std::string TableText(const Table* table, const StructDef& type, std::span<const std::string> path,
                      const std::string& value) {
  std::string text;
  for (const FieldDef* field : type.fields.vec) {
    const bool on_path = !path.empty() && path.front() == field->name;
    std::string of_field;
    if (on_path && path.size() == 1) {
      of_field = value;
    } else if (on_path || (table != nullptr && table->CheckField(field->value.offset))) {
      of_field = FieldText(table, *field, on_path ? path.subspan(1) : path.subspan(0, 0), value);
    }
    if (!of_field.empty()) text += (text.empty() ? "" : ",") + field->name + ":" + of_field;
  }
  return "{" + text + "}";
}

}  // namespace

std::string Extreme::Describe() const {
  constexpr size_t kShown = 40;
  std::string text = message;
  for (const std::string& field : path) text += "." + field;
  if (value.empty()) return text + " left out";
  return text + " = " + (value.size() <= kShown ? value : value.substr(0, kShown) + "...");
}

ExtremeMessages::ExtremeMessages() : schema_(std::make_unique<flatbuffers::Parser>()) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const Result<std::string> text = ReadWholeFile(*files, HDPS_SCHEMA, 1 << 20);
  CHECK(text.ok()) << text.status().message();
  CHECK(schema_->Parse(text->c_str())) << schema_->error_;
  const auto* const kinds = schema_->enums_.Lookup(std::string(kNamespace) + "MessageKind");
  CHECK(kinds != nullptr);
  for (const flatbuffers::EnumVal* kind : kinds->Vals()) {
    const StructDef* const table = schema_->structs_.Lookup(kNamespace + kind->name);
    CHECK(table != nullptr) << kind->name;
    const auto number = static_cast<MessageKind>(kind->GetAsUInt64());
    all_.push_back({number, kind->name, {}, ""});
    AddExtremes(*table, {number, kind->name, {}, ""}, &all_);
  }
}

ExtremeMessages::~ExtremeMessages() = default;

Buffer ExtremeMessages::Apply(const Extreme& extreme, const Buffer& envelope) const {
  const std::string type = kNamespace + extreme.message;
  const auto* const before =
      envelope.empty() ? nullptr : flatbuffers::GetRoot<Table>(envelope.data());
  const std::string text =
      TableText(before, *schema_->structs_.Lookup(type), extreme.path, extreme.value);
  CHECK(schema_->SetRootType(type.c_str()));
  CHECK(schema_->ParseJson(text.c_str())) << schema_->error_ << ": " << extreme.Describe();
  const auto* const bytes =
      reinterpret_cast<const std::byte*>(schema_->builder_.GetBufferPointer());
  return Buffer::CopyOf(std::span(bytes, schema_->builder_.GetSize()));
}

}  // namespace hdps::sim
