// The layouts of the messages of predict_messages.h, in the order of messages.fbs.
#include "common/protocol/predict/predict_messages.h"

#include <limits>
#include <span>

#include "common/protocol/message_codec.h"

namespace hdps {
namespace {

constexpr const char* kTextsFit = "texts and lists end one after the other, and within their bytes";
constexpr const char* kCellsFit = "cells sum to the length of their section";

// Takes the cells of one column after the other out of their sections.
//
// Invariant: no number is read beyond the section of ends.
class CellWalk {
 public:
  // Numbers of texts are read as those of Arrow, which have a sign.
  CellWalk(const Buffer& ends, const Buffer& texts, Rules& rules)
      : ends_(ends.As<uint32_t>()), text_bytes_(texts.size()), rules_(rules) {
    rules_.Require(ends.size() % sizeof(uint32_t) == 0, kCellsFit);
    rules_.Require(texts.size() <= std::numeric_limits<int32_t>::max(), kTextsFit);
  }

  void TakeTexts(uint64_t cells) {
    if (Has(cells)) text_at_ = TakeAscending(cells, text_at_);
  }
  // Takes the lists of a column and the texts in them.
  void TakeLists(uint64_t cells) {
    if (!Has(cells)) return;
    rules_.Require(ends_[at_] == 0, kTextsFit);
    TakeTexts(TakeAscending(cells, 0));
  }
  // Is true if nothing is left. As the ends of texts ascend, all of them lie within the bytes then.
  bool at_end() const { return at_ == ends_.size() && text_at_ == text_bytes_; }

 private:
  bool Has(uint64_t cells) {
    const bool has = cells < ends_.size() - at_;
    rules_.Require(has, kCellsFit);
    return has;
  }
  // Returns the last of cells + 1 numbers.
  uint64_t TakeAscending(uint64_t cells, uint64_t least) {
    uint64_t last = least;
    for (const uint32_t end : ends_.subspan(at_, cells + 1)) {
      rules_.Require(end >= last, kTextsFit);
      last = end;
    }
    at_ += cells + 1;
    return last;
  }

  const std::span<const uint32_t> ends_;
  const uint64_t text_bytes_;
  Rules& rules_;
  size_t at_ = 0;
  uint64_t text_at_ = 0;
};

}  // namespace

template <>
struct Layout<SentColumn> {
  static void Describe(auto& fields, auto& column) {
    fields.Name(column.name);
    fields.Enumerator(column.form, CellForm::kDoubles);
    fields.Number(column.cells);
    fields.Number(column.lists);
  }
};

template <>
struct Layout<SentName> {
  static void Describe(auto& fields, auto& name) { fields.Name(name.name); }
};

template <>
struct Layout<PredictRequest> {
  using Table = wire::PredictRequest;
  static void Describe(auto& fields, auto& message) {
    fields.Name(message.model);
    fields.Number(message.step);
    fields.Tables(message.outputs);
    fields.Number(message.top_k);
    fields.Number(message.rows);
    fields.Tables(message.columns);
    fields.Name(message.table);
    fields.Name(message.id);
    fields.CopiedSection(message.ends);
    fields.CopiedSection(message.texts);
    fields.Section(message.integers);
    fields.Section(message.floats);
    fields.Section(message.doubles);
  }
  static void Check(const PredictRequest& message, Rules& rules) {
    CellWalk walk(message.ends, message.texts, rules);
    uint64_t integers = 0, floats = 0, doubles = 0;
    rules.Require(message.columns.size() <= kSentColumnsMax, "columns are not too many");
    for (const SentColumn& column : message.columns) {
      rules.Require(column.cells == message.rows || column.cells == 1,
                    "a column has a cell for each row, or one for all");
      rules.Require(!column.lists || column.form == CellForm::kTexts, "lists are of texts");
      if (rules.broken() != nullptr) return;
      switch (column.form) {
        case CellForm::kTexts:
          column.lists ? walk.TakeLists(column.cells) : walk.TakeTexts(column.cells);
          break;
        case CellForm::kIntegers:
          integers += column.cells;
          break;
        case CellForm::kFloats:
          floats += column.cells;
          break;
        case CellForm::kDoubles:
          doubles += column.cells;
          break;
      }
    }
    rules.Require(walk.at_end() && message.integers.size() == integers * sizeof(int64_t) &&
                      message.floats.size() == floats * sizeof(float) &&
                      message.doubles.size() == doubles * sizeof(double),
                  kCellsFit);
  }
};
HDPS_MESSAGE(PredictRequest);

template <>
struct Layout<SentOutput> {
  static void Describe(auto& fields, auto& output) {
    fields.Name(output.name);
    fields.Number(output.width);
    fields.Number(output.texts);
  }
};

template <>
struct Layout<SentTensor> {
  static void Describe(auto& fields, auto& tensor) {
    fields.Name(tensor.name);
    fields.Name(tensor.datatype);
    fields.Number(tensor.width);
  }
};

template <>
struct Layout<PredictReply> {
  using Table = wire::PredictReply;
  static void Describe(auto& fields, auto& message) {
    fields.Enumerator(message.code, Code::kCancelled);
    fields.Text(message.message);
    fields.Name(message.model);
    fields.Number(message.step);
    fields.Number(message.rows);
    fields.Tables(message.outputs);
    fields.Tables(message.takes);
    fields.Tables(message.gives);
    fields.Number(message.ready);
    fields.Section(message.numbers);
    fields.CopiedSection(message.ends);
    fields.CopiedSection(message.texts);
  }
  static void Check(const PredictReply& message, Rules& rules) {
    CellWalk walk(message.ends, message.texts, rules);
    uint64_t left = message.numbers.size() / sizeof(float);
    for (const SentOutput& output : message.outputs) {
      const uint64_t values = uint64_t{message.rows} * output.width;
      rules.Require(output.texts || values <= left, kCellsFit);
      if (rules.broken() != nullptr) return;
      if (output.texts) {
        walk.TakeTexts(values);
      } else {
        left -= values;
      }
    }
    rules.Require(walk.at_end() && left == 0 && message.numbers.size() % sizeof(float) == 0,
                  kCellsFit);
  }
};
HDPS_MESSAGE(PredictReply);

}  // namespace hdps
