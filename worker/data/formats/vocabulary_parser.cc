// Lets the values that a vocabulary lacks share one key a feature.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "common/job/vocabulary.h"
#include "worker/data/formats/parsers.h"

namespace hdps {
namespace {

class VocabularyParser : public RowParser {
 public:
  VocabularyParser(std::unique_ptr<RowParser> parser, const DataSpec& data)
      : parser_(std::move(parser)), vocabulary_(data.vocabulary.values) {
    for (const std::string& space : KeySpacesOf(data)) {
      others_.push_back(OtherValuesKey(HashString(space)));
    }
  }

  void UseTable(std::shared_ptr<const ColumnTable> table) override {
    parser_->UseTable(std::move(table));
  }

  void UseOrder(const CellOrder* order) override { parser_->UseOrder(order); }

  std::string_view Hold(std::string_view line) override { return parser_->Hold(line); }

  std::optional<RowError> Parse(std::string_view line, Row* row) override {
    std::optional<RowError> error = parser_->Parse(line, row);
    if (error) return error;
    for (size_t f = 0; f < row->key_ends.size(); ++f) {
      for (uint32_t i = row->KeyBegin(f); i < row->key_ends[f]; ++i) {
        if (!vocabulary_->Has(row->keys[i])) row->keys[i] = others_[f];
      }
    }
    return std::nullopt;
  }

  std::vector<NamedText> Values(std::string_view line) override { return parser_->Values(line); }

 private:
  const std::unique_ptr<RowParser> parser_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<Key> others_;  // [features]
};

}  // namespace

std::unique_ptr<RowParser> NewVocabularyParser(std::unique_ptr<RowParser> parser,
                                               const DataSpec& data) {
  return std::make_unique<VocabularyParser>(std::move(parser), data);
}

}  // namespace hdps
