// Describes the records that both manifests and messages have, for the codec.
#pragma once

#include "common/protocol/manifest_parts.h"
#include "common/protocol/message_codec.h"

namespace hdps {

template <>
struct Layout<SavedFile> {
  static void Describe(auto& fields, auto& file) {
    fields.Name(file.name);
    fields.Number(file.bytes);
    fields.Number(file.checksum);
    fields.Number(file.rows);
    fields.Name(file.pack);
    fields.Number(file.offset);
  }
};

template <>
struct Layout<FilePrint> {
  static void Describe(auto& fields, auto& print) {
    fields.Number(print.bytes);
    fields.Number(print.hash);
  }
};

template <>
struct Layout<PartitionOffset> {
  static void Describe(auto& fields, auto& at) {
    fields.Number(at.partition);
    fields.Number(at.next);
  }
  static void Check(const PartitionOffset& at, Rules& rules) {
    rules.Require(at.next >= 0, "offsets are not negative");
  }
};

}  // namespace hdps
