// Uses one parser for all files, with the cell order of each.
#include "worker/data/whole_files/parsed_rows.h"

#include <utility>

#include "common/job/spec/data_spec.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/header_check.h"

namespace hdps {

ParsedRows::ParsedRows(FileSystem& files, const DataSpec& data,
                       const std::vector<std::string>& paths, const std::vector<LabelSpec>& labels,
                       LineRules rules)
    : data_(data),
      made_(NewParserOf(data, paths, labels)),
      parser_(made_.ok() ? made_->get() : nullptr),
      lines_(files, paths, std::move(rules), [this](uint32_t file, std::string_view text) {
        return TakeHeader(lines_.path(file), text);
      }) {}

Status ParsedRows::TakeHeader(const std::string& path, std::string_view text) {
  if (data_.format != DataFormat::kCsv) return {};
  parser_->UseOrder(nullptr);
  HDPS_ASSIGN_OR_RETURN(HeaderMatch match,
                        MatchHeader(path + ":1", parser_->Values(text), data_.columns,
                                    /*labels_read=*/true));
  order_ = std::move(match.order);
  parser_->UseOrder(&*order_);
  return {};
}

Result<bool> ParsedRows::Next(Row* row) {
  while (true) {
    HDPS_ASSIGN_OR_RETURN(const bool found, lines_.Next(&line_));
    if (!found) return false;
    ++taken_;
    if (!parser_->Parse(line_.text, row)) return true;
  }
}

}  // namespace hdps
