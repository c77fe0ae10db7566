// Gives each line to the parser of rows twice: for its keys, and for the text of the column.
#include "worker/data/whole_files/text_rows.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/job/job_facts.h"
#include "worker/data/formats/row_adder.h"
#include "worker/data/indexed_reader.h"
#include "worker/data/line_reader.h"

namespace hdps {
namespace {

class FileTextRows : public TextRows {
 public:
  FileTextRows(FileSystem& files, const DataSpec& data, const std::vector<std::string>& paths,
               const std::string& column, std::unique_ptr<RowAdder> rows)
      : column_(column),
        rows_(std::move(rows)),
        lines_(files, paths, FileRulesOf(data, paths, /*labels_read=*/false),
               [this](uint32_t file, std::string_view text) {
                 return rows_->TakeHeader(file, text);
               }) {}

  Status Start() { return lines_.Start(); }

  Result<TextBatch> Next(uint32_t rows_max) override {
    TextBatch batch;
    BatchBuilder builder = rows_->NewBatch(rows_max);
    for (Line line; batch.texts.size() < rows_max;) {
      HDPS_ASSIGN_OR_RETURN(const bool found, lines_.Next(&line));
      if (!found) break;
      if (const std::optional<std::string> wrong = rows_->AddOrDescribe(line, &builder)) {
        return Status(Code::kInvalidArgument, *wrong);
      }
      const std::vector<NamedText> values = rows_->Values(line);
      const auto value = std::ranges::find(values, column_, &NamedText::name);
      if (value == values.end()) {
        return Status(Code::kInvalidArgument, lines_.path(line.place.file) + ":" +
                                                  std::to_string(line.place.number) +
                                                  ": there is no cell of the column '" + column_ +
                                                  "', whose texts name the rows");
      }
      batch.texts.push_back(value->text);
    }
    batch.rows = builder.Finish(0);
    return batch;
  }

 private:
  const std::string column_;
  const std::unique_ptr<RowAdder> rows_;
  LineReader lines_;
};

}  // namespace

Result<std::unique_ptr<TextRows>> NewTextRows(FileSystem& files, const DataSpec& data,
                                              const std::vector<std::string>& paths,
                                              const std::string& column) {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<RowAdder> adder,
                        RowAdder::Make(data, paths, {{"", kLabelsNotRead}}));
  auto rows = std::make_unique<FileTextRows>(files, data, paths, column, std::move(adder));
  HDPS_RETURN_IF_ERROR(rows->Start());
  return std::unique_ptr<TextRows>(std::move(rows));
}

}  // namespace hdps
