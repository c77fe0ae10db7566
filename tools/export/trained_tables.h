// Rows of a job's tables from safetensors files, of hdps or of another program.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/job/tables/init_match.h"
#include "common/platform/file_system.h"
#include "tools/export/safetensors_reader.h"
#include "tools/export/shard_rows.h"
#include "worker/model/model.h"

namespace hdps {

// The tensors of all safetensors files of a folder but check.safetensors.
//
// Invariant: no name is in two files.
class TrainedTensors {
 public:
  // Errors: kInvalidArgument names the folder, or the file and what is wrong with it.
  static Result<TrainedTensors> Open(FileSystem& files, const std::string& folder);

  struct Tensor {
    const SafetensorsFile* file = nullptr;
    const SafetensorsFile::Entry* entry = nullptr;
    const SafeTensor& of() const { return entry->tensor; }
    bool real() const;  // Its numbers are F32, F16 or BF16.
    // Reads numbers from number `first` on. Requires: real().
    Status ReadFloats(uint64_t first, std::span<float> numbers) const;
  };
  // Returns a tensor and notes that it is used; null if there is none.
  const Tensor* Use(const std::string& name);
  // Returns the names that were not used.
  std::vector<std::string> Unused() const;

 private:
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Tensor> tensors_;
  std::set<std::string> used_;
};

// Is true for the name of a file that TrainedTensors::Open() reads.
bool IsTensorFile(const std::string& name);

// What became of one table, one feature of it, or one dense tensor.
struct TakenTensor : TakenLine {
  std::optional<size_t> group = std::nullopt;  // That of its rows in ShardRows.
};

// Appends rows of a table to `rows`, a group for each pair of tensors. They are TABLE.weights [n,
// dim] with TABLE.keys, I64 [n], or TABLE.FEATURE.weights with TABLE.FEATURE.values, U8: the texts
// of n values, each ended by a newline. Returns a line for each of these that there is, and one
// that says so if there is none. Errors: kInvalidArgument if keys or values and rows do not fit
// together, and for numbers that are not finite. Needs the memory of some thousand rows.
Result<std::vector<TakenTensor>> TakeTable(const Job& job, TableId table, TrainedTensors* tensors,
                                           ShardRows* rows);

// Copies the dense tensors of the same names and shapes into `flat`, the model's flat array.
Result<std::vector<TakenTensor>> TakeDense(const std::vector<DenseTensor>& model,
                                           TrainedTensors* tensors, std::span<float> flat);

}  // namespace hdps
