// Joins inputs of equal numbers of rows.
#include "tools/serve/requests/request_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/base/outside_text.h"

namespace hdps {

Status CheckRows(const Place& place, uint64_t rows) {
  if (rows <= kRequestRowsMax) return {};
  return {Code::kResourceExhausted, place.Text() + ": " + std::to_string(rows) +
                                        " rows: expected at most " +
                                        std::to_string(kRequestRowsMax) + " a request"};
}

Status CheckBytes(size_t bytes) {
  if (bytes <= kRequestBytesMax) return {};
  return {Code::kResourceExhausted, "the request has " + std::to_string(bytes) +
                                        " bytes: expected at most " +
                                        std::to_string(kRequestBytesMax)};
}

Status CheckId(const Place& place, std::string_view id) {
  if (id.size() <= kRequestIdBytesMax) return {};
  return Wrong(place, " has " + std::to_string(id.size()) + " bytes: expected at most " +
                          std::to_string(kRequestIdBytesMax));
}

RequestTable::RequestTable(std::string body)
    : memory_(std::make_shared<Memory>(Memory{std::move(body), {}})) {}

InputCells* RequestTable::Find(std::string_view name) {
  const auto found = std::ranges::find(memory_->inputs, name, &InputCells::name);
  return found == memory_->inputs.end() ? nullptr : &*found;
}

Result<InputCells*> RequestTable::Add(std::string_view name, CellKind kind,
                                      std::string_view datatype) {
  if (Find(name) != nullptr) {
    return Wrong(InputPlace(name), " comes twice: expected it once");
  }
  return &memory_->inputs.emplace_back(std::string(name), kind, std::string(datatype));
}

Result<std::shared_ptr<const ColumnTable>> RequestTable::Finish() {
  if (inputs().empty()) {
    return Status(Code::kInvalidArgument, "the request has no inputs: expected at least one");
  }
  const InputCells& longest = *std::ranges::max_element(inputs(), {}, &InputCells::rows);
  const uint64_t rows = longest.rows();
  std::vector<ColumnTable::Column> columns(inputs().size());
  std::vector<ColumnChunk> chunks(inputs().size());
  for (size_t i = 0; i < inputs().size(); ++i) {
    InputCells& input = memory_->inputs[i];
    if (input.rows() == 0) {
      return Wrong(InputPlace(input.name()), " has no rows: expected at least one");
    }
    if (input.rows() != rows && input.rows() != 1) {
      return Wrong(InputPlace(input.name()), " has " + std::to_string(input.rows()) +
                                                 " rows, but " + InputPlace(longest.name()).Text() +
                                                 " has " + std::to_string(rows) +
                                                 ": expected as many, or 1 for all rows");
    }
    HDPS_RETURN_IF_ERROR(input.MakeColumn(rows, &columns[i], &chunks[i]));
  }
  HDPS_ASSIGN_OR_RETURN(
      std::unique_ptr<ColumnTable> table,
      ColumnTable::FromChunks(std::move(columns), std::move(chunks), std::move(memory_)));
  return std::shared_ptr<const ColumnTable>(std::move(table));
}

Result<const TensorNote*> InputNote(const ModelNote& model, std::string_view name) {
  const auto found = std::ranges::find(model.inputs, name, &TensorNote::name);
  if (found != model.inputs.end()) return &*found;
  std::vector<std::string> names;
  std::string all;
  for (const TensorNote& note : model.inputs) {
    names.push_back(note.name);
    all += (all.empty() ? "" : ", ") + note.name;
  }
  const std::string nearest = DidYouMean(name, names);
  return Wrong(InputPlace(name),
               " is none of the model" +
                   (nearest.empty() ? ": expected some of " + EscapeUntrusted(all) : nearest));
}

}  // namespace hdps
