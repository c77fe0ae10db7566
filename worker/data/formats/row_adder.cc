// Parses, derives and transforms rows; errors name file, line and column.
#include "worker/data/formats/row_adder.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "common/job/spec/data_spec.h"
#include "worker/data/columnar/table_files.h"
#include "worker/data/header_check.h"
#include "worker/data/item_pool.h"
#include "worker/data/shuffle_window.h"

namespace hdps {
namespace {

constexpr uint64_t kBadRowsLogged = 10;

std::vector<NumericTransforms::Column> TransformsOf(const DataSpec& data, size_t num_numeric) {
  std::vector<NumericTransforms::Column> columns;
  if (!data.columns.empty() && (HasNamedColumns(data.format) || data.format == DataFormat::kIdx)) {
    for (const ColumnSpec& spec : data.columns) {
      if (spec.type == ColumnType::kNumeric) {
        columns.push_back({spec.transform, spec.mean, spec.scale});
      }
    }
    return columns;
  }
  if (data.format == DataFormat::kIdx) {
    columns.assign(num_numeric, {Transform::kStandardize, 0, 255});  // Scales to 0 .. 1.
    return columns;
  }
  columns.assign(num_numeric, {data.numeric_transform, 0, 1});
  return columns;
}

std::unique_ptr<RowParser> WithVocabulary(std::unique_ptr<RowParser> parser, const DataSpec& data) {
  if (data.vocabulary.values == nullptr) return parser;
  return NewVocabularyParser(std::move(parser), data);
}

std::unique_ptr<RowParser> ParserOfFormat(const DataSpec& data,
                                          const std::vector<LabelSpec>& labels) {
  switch (data.format) {
    case DataFormat::kCsv:
      return NewCsvParser(data, labels);
    case DataFormat::kCriteo:
      return NewCriteoParser(data, labels[0].num_classes);
    case DataFormat::kLibsvm:
    case DataFormat::kLibffm:
    case DataFormat::kLibfm:
      return NewLibsvmParser(data, labels[0].num_classes);
    case DataFormat::kIdx:
      return NewIdxParser(data, labels[0].num_classes);
    case DataFormat::kParquet:
      return NewCellLineParser(data, labels);
    case DataFormat::kTfrecord:
    case DataFormat::kJsonl:
      return NewRecordParser(data, labels);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<RowParser> NewRowParser(const DataSpec& data,
                                        const std::vector<LabelSpec>& labels) {
  return WithVocabulary(ParserOfFormat(data, labels), data);
}

Result<std::unique_ptr<RowParser>> NewParserOf(const DataSpec& data,
                                               const std::vector<std::string>& paths,
                                               const std::vector<LabelSpec>& labels) {
  std::shared_ptr<const ColumnTable> table = TableOf(data, paths);
  if (table == nullptr) return NewRowParser(data, labels);
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<RowParser> parser,
                        NewColumnParser(data, labels, std::move(table), paths[0]));
  return WithVocabulary(std::move(parser), data);
}

RowAdder::RowAdder() = default;
RowAdder::~RowAdder() = default;

Result<std::unique_ptr<RowAdder>> RowAdder::Make(const DataSpec& data,
                                                 std::vector<std::string> paths,
                                                 const std::vector<LabelSpec>& labels,
                                                 std::shared_ptr<ItemPool> items,
                                                 BadRows bad_rows) {
  // All columns are parsed and looked at, so that a row is bad for every worker or for none.
  DataSpec all = data;
  all.kept_numbers.clear();
  const FeatureNames names = FeaturesOf(all);
  std::unique_ptr<RowAdder> adder(new RowAdder());
  HDPS_ASSIGN_OR_RETURN(adder->derived_,
                        DerivedFeatures::Make(data.features, names.numeric, BaseFeaturesOf(data)));
  adder->paths_ = std::move(paths);
  if (HasNamedColumns(data.format)) adder->columns_ = data.columns;
  adder->labels_read_ = labels[0].num_classes != kLabelsNotRead;
  adder->bad_rows_become_ = bad_rows;
  adder->of_table_ = TableOf(data, adder->paths_) != nullptr;
  adder->of_records_ = !adder->of_table_ && HasTypedCells(data.format);
  if (!adder->labels_read_ && !adder->of_table_) {
    adder->absent_ = AbsentCells::Of(data, adder->paths_);
  }
  adder->max_bad_rows_ = static_cast<uint64_t>(std::max<int64_t>(0, data.max_bad_rows));
  HDPS_ASSIGN_OR_RETURN(adder->parser_, NewParserOf(data, adder->paths_, labels));
  adder->items_ = std::move(items);
  adder->transforms_ = NumericTransforms(TransformsOf(data, names.numeric.size()));
  adder->numeric_names_ = names.numeric;
  adder->kept_columns_ = data.kept_numbers;
  adder->labels_ = labels;
  adder->packed_shape_ = CachedShapeOf(
      data, labels, adder->items_ != nullptr ? CachedForm::kBase : CachedForm::kDerived);
  adder->shape_ = {.num_numeric = FeaturesOf(data).numeric.size(),
                   .num_sparse = names.sparse.size(),
                   .num_labels = static_cast<uint32_t>(labels.size()),
                   .weights = HasColumn(data, ColumnType::kWeight) || bad_rows == BadRows::kKept,
                   .groups = HasColumn(data, ColumnType::kGroup),
                   .ids = adder->packed_shape_.ids,
                   .numbered = adder->items_ != nullptr || data.max_bad_rows > 0};
  return adder;
}

Status RowAdder::TakeHeader(uint32_t file, std::string_view text,
                            std::vector<std::string>* passed_over) {
  if (columns_.empty()) return labels_read_ ? Status() : RefuseRowAsHeader(file, text);
  parser_->UseOrder(nullptr);
  HDPS_ASSIGN_OR_RETURN(HeaderMatch match, MatchHeader(paths_[file] + ":1", parser_->Values(text),
                                                       columns_, labels_read_));
  if (passed_over != nullptr)
    std::ranges::move(match.passed_over, std::back_inserter(*passed_over));
  if (match.as_job && orders_.empty()) return {};
  orders_.resize(paths_.size());
  orders_[file] = nullptr;
  if (match.as_job) return {};
  const auto alike = std::ranges::find_if(
      orders_, [&](const auto& order) { return order != nullptr && *order == match.order; });
  orders_[file] =
      alike != orders_.end() ? *alike : std::make_shared<const CellOrder>(std::move(match.order));
  return {};
}

// For formats with fixed column names: refuses a row in the header's place, which would be lost.
Status RowAdder::RefuseRowAsHeader(uint32_t file, std::string_view text) {
  const CellOrder unlabelled{{}, 0, /*label=*/false};
  for (const CellOrder* const order : {static_cast<const CellOrder*>(nullptr), &unlabelled}) {
    parser_->UseOrder(order);
    const bool row = !parser_->Parse(text, &row_);
    parser_->UseOrder(nullptr);
    if (!row) continue;
    return {Code::kInvalidArgument,
            paths_[file] +
                ":1: data.header is true, but this line reads like a row: expected the names of "
                "the columns, or data.header to be false"};
  }
  return {};
}

inline std::optional<RowError> RowAdder::TryAdd(const Line& line, const RowPlace& place,
                                                BatchBuilder* builder) {
  UseOrderOf(line);
  std::optional<RowError> error = parser_->Parse(line.text, &row_);
  makes_ = items_ != nullptr && !error && row_.label == 1.0f;
  if (makes_) parsed_ = row_;
  const bool packs_base = run_ != nullptr && packed_shape_.form == CachedForm::kBase;
  if (packs_base && !error) run_->Add(packed_shape_, row_, {});
  if (!error) error = derived_->Append(&row_);
  if (!error && !transforms_.Apply(row_.numbers, &numeric_)) error = DoesNotFit();
  if (run_ != nullptr) EndPacked(line, error);
  if (!error && builder != nullptr) AddRow(place, builder);
  return error;
}

void RowAdder::AddRow(const RowPlace& place, BatchBuilder* builder) {
  KeepNumbers();
  builder->Add(row_, kept(), place.number);
  if (makes_) AddNegatives(place, builder);
}

void RowAdder::EndPacked(const Line& line, const std::optional<RowError>& error) {
  if (error) {
    run_->DropRow();
    run_->AddBad(Describe(line, *error));
  } else if (packed_shape_.form == CachedForm::kDerived) {
    run_->Add(packed_shape_, row_, numeric_);
  }
  run_->EndRow(line.row, static_cast<uint32_t>(WindowLines(line.text.size())));
}

bool RowAdder::LabelsFit(const RowInPlace& row) const {
  for (size_t i = 0; i < labels_.size(); ++i) {
    float label;
    std::memcpy(&label, row.labels + i * sizeof(label), sizeof(label));
    const uint32_t classes = labels_[i].num_classes;
    const bool fits = classes == kLabelsAnyNumber
                          ? std::isfinite(label)
                          : label >= 0 && label < static_cast<float>(classes);
    if (!fits) return false;
  }
  return true;
}

Result<bool> RowAdder::AddPacked(std::span<const std::byte> bytes, const RowPlace& place,
                                 BatchBuilder* builder) {
  const std::optional<PackedRow> packed = FindParts(packed_shape_, bytes);
  if (!packed) return false;
  if (packed->bad) {
    HDPS_RETURN_IF_ERROR(CountBad(std::string(packed->why), place, builder));
    return true;
  }
  if (!LabelsFit(*packed)) return false;
  const bool derived = packed_shape_.form == CachedForm::kDerived;
  if (derived && packed->one_key_each && kept_columns_.empty()) {
    builder->AddInPlace(*packed, place.number);
    return true;
  }
  if (!Unpack(packed_shape_, *packed, &row_, &numeric_)) return false;
  makes_ = items_ != nullptr && row_.label == 1.0f;
  if (makes_) parsed_ = row_;
  if (!derived && (derived_->Append(&row_) || !transforms_.Apply(row_.numbers, &numeric_))) {
    return false;
  }
  AddRow(place, builder);
  return true;
}

void RowAdder::KeepNumbers() {
  kept_.resize(kept_columns_.size());
  for (size_t i = 0; i < kept_.size(); ++i) kept_[i] = numeric_[kept_columns_[i]];
}

void RowAdder::AddNegatives(const RowPlace& place, BatchBuilder* builder) {
  for (uint32_t n = 0; n < items_->per_positive(); ++n) {
    if (!items_->Replace(parsed_, place.epoch, place.position, n, &row_)) continue;
    // A cross with the other item may have too many keys; then this example is left out.
    if (!derived_->Append(&row_)) builder->Add(row_, kept(), place.number);
  }
}

// Adds an example without keys, with 0 for its numbers and labels.
void RowAdder::AddStandIn(const RowPlace& place, BatchBuilder* builder) const {
  Row row;
  row.weight = 0;
  row.task_labels.resize(shape_.num_labels);
  row.key_ends.resize(shape_.num_sparse);
  builder->Add(row, std::vector<float>(shape_.num_numeric), place.number);
}

std::string RowAdder::Describe(const Line& line, const RowError& error) const {
  const std::string& path = paths_[line.place.file];
  if (of_table_) return DescribeCellError(TableRowPlace(path, line.place.number - 1), error);
  if (of_records_) return DescribeCellError(path + ":" + std::to_string(line.place.number), error);
  return DescribeRowError(path, line.place.number, line.text, error);
}

std::optional<std::string> RowAdder::AddOrDescribe(const Line& line, BatchBuilder* builder) {
  if (absent_ != nullptr) {
    if (const Status told = absent_->Look(line, *parser_); !told.ok()) return told.message();
  }
  const std::optional<RowError> error = TryAdd(line, {}, builder);
  if (!error) return std::nullopt;
  return Describe(line, *error);
}

bool RowAdder::AddIfRow(const Line& line, uint32_t number, BatchBuilder* builder) {
  DCHECK(absent_ == nullptr && items_ == nullptr);
  return !TryAdd(line, {.number = number}, builder);
}

Status RowAdder::Add(const Line& line, const RowPlace& place, BatchBuilder* builder) {
  if (absent_ != nullptr) HDPS_RETURN_IF_ERROR(absent_->Look(line, *parser_));
  const std::optional<RowError> error = TryAdd(line, place, builder);
  return error ? CountBad(Describe(line, *error), place, builder) : Status();
}

Status RowAdder::CountBad(const std::string& what, const RowPlace& place, BatchBuilder* builder) {
  ++bad_rows_;
  const bool kept = bad_rows_become_ == BadRows::kKept;
  if (bad_rows_become_ == BadRows::kRefused) {
    return {Code::kInvalidArgument, what + " (--bad_rows=nan gives nan in the line of such a row)"};
  }
  if (kept) AddStandIn(place, builder);
  if (!kept && bad_rows_ > max_bad_rows_) {
    return {Code::kInvalidArgument, what + " (bad rows: " + std::to_string(bad_rows_) +
                                        ", data.max_bad_rows: " + std::to_string(max_bad_rows_) +
                                        "; set it higher to pass over them)"};
  }
  if (bad_rows_ <= kBadRowsLogged) {
    LOG(WARNING) << (kept ? "bad row, nan in its line: " : "bad row passed over: ") << what;
  }
  if (bad_rows_ == kBadRowsLogged) LOG(WARNING) << "further bad rows are counted, not shown";
  return {};
}

RowError RowAdder::DoesNotFit() const {
  const auto huge = std::find_if(numeric_.begin(), numeric_.end(),
                                 [](float value) { return !std::isfinite(value); });
  const auto column = static_cast<size_t>(huge - numeric_.begin());
  return {{}, numeric_names_[column], "a number within the range of a 32-bit float"};
}

}  // namespace hdps
