// Writes cells from the events of nlohmann's parser, without a tree.
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "common/base/outside_text.h"
#include "worker/data/records/record_cells.h"
#include "worker/data/records/row_cells.h"

namespace hdps {
namespace {

using Json = nlohmann::json;

// Takes the events of one line.
//
// Invariant: depth_ is the number of objects and lists that are open. cell_ is the cell of the last
// name of the outermost object; in_list_ tells that its list is open.
class JsonEventCells : public RecordCells, private nlohmann::json_sax<Json> {
 public:
  JsonEventCells(const DataSpec& data, bool labels_read) : cells_(data, labels_read) {}

  std::optional<RowError> Write(std::string_view record, CellLineWriter* line) override {
    cells_.Clear();
    depth_ = 0;
    cell_ = RowCells::kNone;
    in_list_ = skips_ = false;
    value_.clear();
    column_.clear();
    expected_.clear();
    auto* const events = static_cast<nlohmann::json_sax<Json>*>(this);
    if (!Json::sax_parse(record.begin(), record.end(), events)) {
      return RowError{value_, column_, expected_};
    }
    cells_.WriteTo(line);
    return std::nullopt;
  }

 private:
  bool null() override {
    return Value([this] {
      if (in_list_) cells_.values().AddMissing();
    });
  }
  bool boolean(bool value) override {
    return Value([&] { cells_.values().AddInteger(value ? 1 : 0); });
  }
  bool number_integer(int64_t value) override {
    return Value([&] { cells_.values().AddInteger(value); });
  }
  bool number_unsigned(uint64_t value) override {
    return Value([&] { cells_.values().AddUnsigned(value); });
  }
  bool number_float(double value, const std::string& text) override {
    const RecordValue kind = in_list_ ? RecordValue::kFractions : RecordValue::kFraction;
    if (Wanted() && !Fits(kind, text)) return skips_;
    return Value([&] { cells_.values().AddDouble(value); });
  }
  bool string(std::string& value) override {
    return Value([&] { cells_.values().AddText(value); });
  }
  bool binary(Json::binary_t&) override { return false; }

  bool start_object(size_t) override {
    const bool wanted = Wanted();
    ++depth_;
    return !wanted || Fits(RecordValue::kOther, "{") || skips_;
  }
  bool start_array(size_t) override {
    if (depth_ == 0) return NoObject("[");
    const bool wanted = Wanted(), nested = in_list_;
    ++depth_;
    if (!wanted) return true;
    if (!Fits(nested ? RecordValue::kOther : RecordValue::kList, "[")) return skips_;
    in_list_ = true;
    list_ = cells_.values().BeginList();
    return true;
  }
  bool end_object() override {
    if (--depth_ == 1) skips_ = false;
    return true;
  }
  bool end_array() override {
    if (--depth_ > 1) return true;
    if (in_list_) {
      cells_.values().EndList(list_);
      cells_.EndCell();
      in_list_ = false;
    }
    skips_ = false;
    return true;
  }
  bool key(std::string& name) override {
    if (depth_ > 1) return true;
    skips_ = false;
    cell_ = cells_.Find(name);
    if (cell_ == RowCells::kNone || cells_.BeginCell(cell_)) return true;
    value_ = name;
    column_ = name;
    expected_ = "one value, but the name stands there twice,";
    return false;
  }
  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ...".
    std::string why = error.what();
    const size_t colon = why.find(": ");
    if (colon != std::string::npos) why.erase(0, colon + 2);
    value_ = token;
    expected_ = "a JSON object a line; at byte " + std::to_string(position) + ": " +
                EscapeUntrusted(why, kReasonBytesMax);
    return false;
  }

  static constexpr size_t kReasonBytesMax = 200;

  // Returns true where a value is one that a column reads: a member of the object, or of its list.
  bool Wanted() const {
    return cell_ != RowCells::kNone && !skips_ && depth_ == (in_list_ ? 2u : 1u);
  }
  template <typename Add>
  bool Value(const Add& add) {
    if (depth_ == 0) return NoObject("");
    if (!Wanted()) return true;
    add();
    if (!in_list_) cells_.EndCell();
    return true;
  }
  bool NoObject(const std::string& value) {
    value_ = value;
    expected_ = "a JSON object a line, as data.format is jsonl";
    return false;
  }
  // Returns false for a value of a kind that the columns do not take: an error, unless it counts as
  // missing, and what follows of it is skipped.
  bool Fits(RecordValue kind, const std::string& value) {
    const std::string_view why = cells_.WhyNot(cell_, kind);
    if (why.empty()) return true;
    if (cells_.ignored(cell_)) {
      cells_.DropCell();
      in_list_ = false;
      skips_ = true;
      return false;
    }
    value_ = value;
    column_ = cells_.name(cell_);
    expected_ = why;
    return false;
  }

  RowCells cells_;
  size_t depth_ = 0;
  size_t cell_ = RowCells::kNone;
  bool in_list_ = false;
  bool skips_ = false;                     // The rest of the cell's value.
  size_t list_ = 0;                        // For EndList().
  std::string value_, column_, expected_;  // Of the error.
};

}  // namespace

std::unique_ptr<RecordCells> NewJsonEventCells(const DataSpec& data, bool labels_read) {
  return std::make_unique<JsonEventCells>(data, labels_read);
}

}  // namespace hdps
