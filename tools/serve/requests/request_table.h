// Makes a table of the inputs of a request.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "tools/serve/requests/input_cells.h"
#include "tools/serve/requests/request_place.h"
#include "tools/serve/requests/score_request.h"

namespace hdps {

// kResourceExhausted if there are more rows than a request may have.
Status CheckRows(const Place& place, uint64_t rows);
// kResourceExhausted if the body is larger than a request may be.
Status CheckBytes(size_t bytes);
// kInvalidArgument if the id at the place is longer than one may be.
Status CheckId(const Place& place, std::string_view id);

// Inputs of a request, each at most once, and the body in which their cells may lie.
class RequestTable {
 public:
  explicit RequestTable(std::string body);

  std::string& body() { return memory_->body; }
  const std::deque<InputCells>& inputs() const { return memory_->inputs; }

  // Adds an input without cells, which stays where it is. kInvalidArgument if it is there already.
  Result<InputCells*> Add(std::string_view name, CellKind kind, std::string_view datatype);
  // Returns the input; null if there is none.
  InputCells* Find(std::string_view name);

  // Returns the table, which keeps body and cells. kInvalidArgument if there are no inputs or no
  // rows, or if an input has neither as many rows as the others nor one.
  Result<std::shared_ptr<const ColumnTable>> Finish();

 private:
  struct Memory {
    std::string body;
    std::deque<InputCells> inputs;
  };
  std::shared_ptr<Memory> memory_;
};

// Returns what the model says of an input. kInvalidArgument if it has none of the name.
Result<const TensorNote*> InputNote(const ModelNote& model, std::string_view name);

}  // namespace hdps
