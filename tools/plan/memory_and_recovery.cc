// Computes bytes from rows, and times of checkpoints from bytes, disk and cores.
#include "tools/plan/memory_and_recovery.h"

#include <algorithm>

#include "kernels/product_workspace.h"

namespace hdps {
namespace {

constexpr double kNano = 1e-9;
constexpr double kFloatBytes = sizeof(float), kKeyBytes = 8;

// Adds the memory of a worker's GPU, if it has one. This is an upper bound, because all transfers
// are counted with a copy.
void AddDeviceMemory(const PlanQuestion& question, PlanAnswer* answer) {
  const JobShape& shape = question.shape;
  const double step = double(question.batch) / question.workers;
  const double examples = step / question.micro_batches;
  const auto dense = static_cast<double>(shape.dense_floats);
  const auto state = static_cast<double>(shape.dense_state_floats);
  double floats = 0;
  for (const JobShape::Table& table : shape.tables) {
    // Rows of one micro-batch.
    const double rows = table.features * std::min(examples, step * answer->unique_share);
    // Rows and gradients; twice for the upload, once for the download.
    floats += 5 * rows * table.dim;
    // Kept rows have state and are copied as a whole.
    floats += 6 * table.kept_rows * (table.dim + table.state_floats);
  }
  // For each key its example and row, twice for the upload and once in place, and both sorted by
  // row.
  floats += 20 * examples * shape.keys;
  // Each output and its gradient: pooled embeddings, embeddings joined with the numbers, and
  // layers.
  floats += 2 * examples * double(2 * shape.embedding_floats + 2 * shape.activation_floats);
  // Weights in the layout of products, and their gradients. With allreduce also their rows with
  // state, all copied up and down at checkpoints; otherwise weights up and gradients down.
  floats += 2 * dense + (question.allreduce ? 3 * (dense + state) : 3 * dense);
  answer->device_bytes = kFloatBytes * floats + double(kProductWorkspaceBytes);
}

}  // namespace

void AddMemory(const PlanQuestion& question, const MachineConstants& constants, double rows,
               double floats, PlanAnswer* answer) {
  const JobShape& shape = question.shape;
  const auto servers = static_cast<double>(question.servers);
  double row_bytes = 0, row_floats = 0;
  for (const JobShape::Table& table : shape.tables) {
    row_bytes += static_cast<double>(table.row_bytes);
    row_floats += table.dim + table.state_floats;
  }
  const auto tables = static_cast<double>(shape.tables.size());
  const double dense =
      kFloatBytes * double(shape.dense_floats + shape.dense_state_floats) / servers;
  answer->server_rows = question.rows / servers;
  answer->server_row_bytes = answer->server_rows * row_bytes + dense;
  answer->server_index_bytes = answer->server_rows * tables * constants.index_row_bytes;
  // A server buffers one pull and one push of each worker at a time, and its key lists.
  const double rows_bytes = kFloatBytes * floats;
  const double each = (2 * rows_bytes + 2 * kKeyBytes * rows) / servers;
  answer->server_buffer_bytes = question.workers * each;
  const double examples = double(question.batch) / question.workers;
  const double batch_bytes = examples * (kKeyBytes * 1.5 * shape.keys + 64);
  const double activations = 2 * kFloatBytes * examples / question.micro_batches *
                             double(shape.embedding_floats + 2 * shape.activation_floats);
  constexpr double kBatchesReady = 6, kDenseCopies = 4;
  answer->worker_bytes = (2 + question.lookahead) * rows_bytes + kBatchesReady * batch_bytes +
                         activations + kDenseCopies * kFloatBytes * double(shape.dense_floats);
  AddDeviceMemory(question, answer);
  // Files store every weight as a float, whatever its format in memory.
  answer->checkpoint_bytes =
      question.rows * (kFloatBytes * row_floats + tables * kKeyBytes) + dense * servers;
}

void AddRecovery(const PlanQuestion& question, const MachineConstants& constants,
                 PlanAnswer* answer) {
  // Servers of one machine share its disk and cores.
  const double sharing = question.one_machine    ? question.servers
                         : question.machines > 0 ? double(question.servers) / question.machines
                                                 : 1;
  const double bytes = sharing * answer->checkpoint_bytes / question.servers;
  const auto seconds = [&](double disk_ns, double core_ns) {
    return kNano * bytes * std::max(disk_ns, core_ns / question.cores);
  };
  answer->checkpoint_seconds = seconds(constants.disk_write_byte_ns, constants.save_byte_ns);
  answer->detect_seconds = question.dead_after_seconds;
  answer->load_seconds = seconds(constants.disk_read_byte_ns, constants.load_byte_ns);
  // On average half of the steps between two checkpoints.
  double between = double(question.checkpoint_every_steps) * answer->step_seconds;
  if (const double seconds_between = question.checkpoint_every_seconds; seconds_between > 0) {
    between = between > 0 ? std::min(between, seconds_between) : seconds_between;
  }
  answer->redo_seconds = 0.5 * between;
  answer->recovery_seconds = answer->detect_seconds + constants.start_seconds +
                             answer->load_seconds + answer->redo_seconds;
}

}  // namespace hdps
