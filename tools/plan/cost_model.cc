// A step as a sum of measured costs: the worker's chain of push, rows and compute, beside what each
// server, link and reader can do.
#include "tools/plan/cost_model.h"

#include <algorithm>
#include <cmath>

#include "kernels/host/unique_row_gemm.h"
#include "tools/plan/row_tiers.h"
#include "worker/data/batch_reader.h"

namespace hdps {
namespace {

constexpr double kNano = 1e-9, kMicro = 1e-6;
constexpr double kFloatBytes = sizeof(float), kKeyBytes = 8;

// What was measured had rows of a rule with two floats of state a weight.
constexpr double kMeasuredStates = 2;

// What one worker asks for in one step.
struct Asked {
  double rows = 0;    // Over all tables.
  double floats = 0;  // Of those rows.
  // What a push writes, in floats of a row with as much state a weight as was measured.
  double pushed_floats = 0;
  double dense = 0, pushed_dense = 0;           // Floats through the servers, likewise.
  double changed_rows = 0, changed_floats = 0;  // Come once more at their turn.
};

double OfMeasuredRule(double weights, double states) {
  return (weights + states) / (1 + kMeasuredStates);
}

// Everything Plan() works out on the way.
class Planner {
 public:
  Planner(const PlanQuestion& question, const MachineConstants& constants)
      : q_(question), c_(constants), examples_(double(q_.batch) / q_.workers) {}

  PlanAnswer Run() {
    AskRows();
    FetchRows();
    Compute();
    Read();
    Exchange();
    Step();
    Memory();
    Recovery();
    return answer_;
  }

 private:
  double workers() const { return q_.workers; }
  double servers() const { return q_.servers; }
  bool ahead() const { return q_.lookahead > 0; }
  bool changes() const { return ahead() && q_.sync; }
  const PathCosts& path() const {
    if (!q_.one_machine) return c_.socket;
    return q_.inproc ? c_.inproc : c_.local;
  }

  // Distinct keys of one feature among those of so many examples.
  double DistinctOfFeature(double examples) const {
    const double values = std::max(q_.rows / std::max(q_.shape.keys, 1u), 1.0);
    return ExpectedDistinct(values, q_.zipf, examples);
  }

  void AskRows() {
    const double of_feature = DistinctOfFeature(examples_);
    answer_.unique_share = q_.unique_share > 0 ? q_.unique_share : of_feature / examples_;
    answer_.changed_share = q_.changed_share;
    if (q_.changed_share < 0) {
      // Of one worker's keys, those among the keys of all workers in the step before.
      const double all = DistinctOfFeature(examples_ * workers());
      const double with_one_more = DistinctOfFeature(examples_ * (workers() + 1));
      answer_.changed_share = std::clamp((of_feature + all - with_one_more) / of_feature, 0.0, 1.0);
    }
    // A part of a step repeats fewer of its keys than the whole.
    const double part = examples_ / q_.micro_batches;
    part_share_ = std::min(
        1.0, answer_.unique_share * DistinctOfFeature(part) / part * examples_ / of_feature);
    for (const JobShape::Table& table : q_.shape.tables) {
      const double distinct = examples_ * table.features * answer_.unique_share;
      asked_.rows += distinct;
      asked_.floats += distinct * table.dim;
      asked_.pushed_floats += distinct * OfMeasuredRule(table.dim, table.state_floats);
      parts_rows_ += examples_ * table.features * part_share_;
      parts_floats_ += examples_ * table.features * part_share_ * table.dim;
    }
    if (changes()) {
      asked_.changed_rows = answer_.changed_share * asked_.rows;
      asked_.changed_floats = answer_.changed_share * asked_.floats;
    }
    if (q_.allreduce) return;
    asked_.dense = static_cast<double>(q_.shape.dense_floats);
    asked_.pushed_dense = OfMeasuredRule(asked_.dense, double(q_.shape.dense_state_floats));
  }

  // Rows of a step that have left memory since they were last used.
  void FetchRows() {
    if (q_.row_memory_bytes < 0) return;
    const TierQuestion question = {.shape = q_.shape,
                                   .values = std::max(q_.rows / std::max(q_.shape.keys, 1u), 1.0),
                                   .zipf = q_.zipf,
                                   .draws = examples_ * workers(),
                                   .bytes = q_.row_memory_bytes * servers(),
                                   .index_bytes = c_.index_row_bytes};
    const RowTiers tiers = PlanTiers(question, q_.rows);
    answer_.share_in_memory = tiers.share_in_memory;
    answer_.rows_back = tiers.rows_back;
    answer_.rows_back_seconds = kMicro * c_.tier_row_back_us * answer_.rows_back;
  }

  // The products of a layer for the worker's examples, on as many cores as were measured; takes
  // the floats that a layer on distinct rows does not gather off `*embedding_floats`.
  double ProductSeconds(const Product& product, double* embedding_floats) {
    constexpr double kPasses = 3;  // Forward, the weights' gradient, the input's gradient.
    const double part = examples_ / q_.micro_batches;
    const auto plain = [&](double inputs) {
      return kPasses * 2 * inputs * product.units * examples_ /
             (c_.GflopsFor(inputs, product.units, part) * 1e9);
    };
    if (product.row_features == 0) return plain(product.inputs);
    const double keys = part * product.row_features;
    const UniqueRowGemmShape shape = {static_cast<size_t>(keys),
                                      static_cast<size_t>(keys * part_share_), product.row_dim,
                                      product.units};
    if (!q_.shape.always_on_rows && !UniqueRowGemmPays(shape)) return plain(product.inputs);
    answer_.first_layer_on_rows = true;
    const double embedding = double(product.row_features) * product.row_dim;
    *embedding_floats -= embedding;
    const double row_floats = keys * part_share_ * product.row_dim;
    const double on_rows = row_floats * (kPasses * 2 * product.units / (c_.model_row_gflops * 1e9) +
                                         kNano * c_.model_row_float_ns);
    const double gathered = kNano * keys * product.units * c_.model_gather_float_ns;
    return q_.micro_batches * (on_rows + gathered) + plain(product.inputs - embedding);
  }

  // Products and layers of one worker, on all cores of its machine.
  void Compute() {
    double products = 0;
    auto embedding_floats = double(q_.shape.embedding_floats);
    for (const Product& product : q_.shape.products) {
      products += ProductSeconds(product, &embedding_floats);
    }
    const double layers = kNano * examples_ *
                          (c_.model_example_ns + c_.model_embedding_float_ns * embedding_floats +
                           c_.model_activation_float_ns * double(q_.shape.activation_floats));
    // The rows of each part are cut out, their gradients and the dense ones added up.
    double merging = 0;
    if (q_.micro_batches > 1) {
      const double dense = q_.micro_batches * static_cast<double>(q_.shape.dense_floats);
      merging = kNano * (parts_rows_ * c_.model_merge_row_ns +
                         (parts_floats_ + dense) * c_.model_merge_float_ns);
    }
    const double faster = c_.cores / q_.cores;
    answer_.products_seconds = products * faster;
    answer_.compute_seconds = (products + layers) * faster + merging;
  }

  // One thread of the worker.
  void Read() {
    const double own = examples_ * q_.text_row_bytes, all = own * workers();
    double read = own * c_.read_byte_ns + (all - own) * c_.scan_byte_ns;
    if (q_.workers >= kPartsMany) {
      read = examples_ * (workers() * c_.draw_row_ns + c_.fetch_row_ns);
      answer_.first_epoch_seconds = kNano * all * c_.find_byte_ns;
      if (q_.first_epoch) read += all * c_.find_byte_ns;
    }
    const double keys = examples_ * q_.shape.keys;
    answer_.reader_seconds =
        kNano * (read + keys * (c_.dedup_key_ns + answer_.unique_share * c_.split_key_ns +
                                (q_.micro_batches > 1 ? c_.cut_key_ns : 0)));
  }

  double ChainOf(const ExchangeCost& cost, double floats, double dense) const {
    return kMicro * cost.base_us + kNano * (asked_.rows * cost.row_ns + floats * cost.float_ns +
                                            dense * cost.dense_float_ns);
  }

  void Exchange() {
    const double message = kMicro * c_.server_message_us;
    const double more_servers = message * (servers() - 1);
    answer_.pull_seconds =
        ChainOf(path().pull, asked_.floats, ahead() ? 0 : asked_.dense) + more_servers;
    answer_.push_seconds =
        ChainOf(path().push, asked_.pushed_floats, asked_.pushed_dense) + more_servers;
    const RepairCost& repair = path().repair;
    if (ahead()) {
      answer_.repair_seconds =
          kMicro * repair.base_us + more_servers +
          kNano * (asked_.rows * repair.row_ns + asked_.floats * repair.float_ns +
                   asked_.changed_rows * repair.changed_row_ns +
                   asked_.changed_floats * repair.changed_float_ns +
                   asked_.dense * path().pull.dense_float_ns);
    }
    answer_.exchange_seconds =
        answer_.push_seconds + (ahead() ? answer_.repair_seconds : answer_.pull_seconds);
    const double share = workers() / servers();
    const auto served = [&](double ns) {
      return share * kNano * ns / q_.cores + workers() * message;
    };
    const double dense_pull = asked_.dense * c_.server_dense_pull_float_ns;
    const double rows_back = answer_.rows_back_seconds / servers() / q_.cores;
    if (!ahead()) {
      answer_.pull_seconds += rows_back;
      answer_.exchange_seconds += rows_back;
    }
    server_pull_ =
        rows_back + served(asked_.rows * c_.server_pull_row_ns +
                           asked_.floats * c_.server_pull_float_ns + (ahead() ? 0 : dense_pull));
    server_push_ = served(asked_.rows * c_.server_push_row_ns +
                          asked_.pushed_floats * c_.server_push_float_ns +
                          asked_.pushed_dense * c_.server_dense_push_float_ns);
    if (ahead()) {
      server_repair_ = served((q_.sync ? asked_.rows * c_.server_pull_row_ns : 0) +
                              asked_.changed_floats * c_.server_pull_float_ns + dense_pull);
    }
    answer_.new_rows_seconds =
        share / q_.cores * kNano *
        (asked_.rows * c_.server_new_row_ns + asked_.floats * c_.server_new_float_ns);
    // Others leave memory for them.
    if (answer_.share_in_memory < 1) {
      answer_.new_rows_seconds += share / q_.cores * kMicro * c_.tier_row_back_us * asked_.rows;
    }
    // Keys travel once a step.
    const double keys = kKeyBytes * asked_.rows, each = q_.wire_float_bytes;
    push_bytes_ = each * (asked_.floats + asked_.dense);
    pull_bytes_ = each * (asked_.floats + (ahead() ? 0 : asked_.dense));
    repair_bytes_ = ahead() ? each * (asked_.changed_floats + asked_.dense) : 0;
    answer_.worker_bytes_in = pull_bytes_ + repair_bytes_;
    answer_.worker_bytes_out = keys + push_bytes_;
    answer_.server_bytes_in = share * answer_.worker_bytes_out;
    answer_.server_bytes_out = share * answer_.worker_bytes_in;
    AddAllreduce();
  }

  // Each rank sends and receives 2 (N - 1) / N of the gradients.
  void AddAllreduce() {
    if (!q_.allreduce || q_.workers == 1) return;
    const double bytes =
        2 * (workers() - 1) / workers() * kFloatBytes * static_cast<double>(q_.shape.dense_floats);
    const double wire = q_.one_machine ? workers() * kNano * c_.wire_byte_ns * bytes
                                       : bytes / q_.network_bytes_per_second;
    allreduce_ = wire + 2 * kMicro * std::max(q_.network_round_trip_us, path().pull.base_us);
    answer_.worker_bytes_in += bytes;
    answer_.worker_bytes_out += bytes;
  }

  // Threads that want the same cores cost each other more than their time.
  double Beside(double core_seconds) const { return (1 + c_.sharing_beside) * core_seconds; }

  // Members share the cores. What goes on beside a worker's chain takes its share of them from it,
  // and they are never busier than all of the time.
  double StepOnOneMachine() {
    const double busy = std::min<double>(c_.exchange_busy_cores, q_.cores);
    const double chain = answer_.exchange_seconds;
    const double beside = Beside(answer_.reader_seconds +
                                 (ahead() ? server_pull_ * servers() * q_.cores / workers() : 0));
    answer_.core_seconds = workers() * (answer_.compute_seconds * q_.cores + chain * busy + beside);
    const double alone = chain + answer_.compute_seconds + beside / q_.cores;
    // In lockstep each part of a step lasts as long as the slowest worker takes for it.
    const double used = q_.sync && q_.workers > 1 ? c_.sharing_lockstep : 1;
    return std::max(alone, answer_.core_seconds / (q_.cores * used)) + allreduce_;
  }

  // The measured chain went over a socket of one machine; here the network takes its place where it
  // is slower.
  double OverNetwork(double chain, double bytes, double server, double server_bytes) const {
    const double link = bytes / q_.network_bytes_per_second;
    const double socket = kNano * c_.wire_byte_ns * bytes;
    const double alone = chain + std::max(0.0, link - socket) + kMicro * q_.network_round_trip_us;
    return std::max({alone, server, server_bytes / q_.network_bytes_per_second});
  }

  double StepOverNetwork() {
    const double share = workers() / servers();
    const double push =
        OverNetwork(answer_.push_seconds, push_bytes_, server_push_, share * push_bytes_);
    const double pull =
        OverNetwork(answer_.pull_seconds, pull_bytes_, server_pull_, share * pull_bytes_);
    const double compute = answer_.compute_seconds + Beside(answer_.reader_seconds) / q_.cores;
    double step = 0;
    if (ahead()) {
      const double repair =
          OverNetwork(answer_.repair_seconds, repair_bytes_, server_repair_, share * repair_bytes_);
      answer_.exchange_seconds = push + repair;
      step = push + repair + std::max(compute, pull);
    } else {
      answer_.exchange_seconds = push + pull;
      step = push + pull + compute;
    }
    worker_link_ =
        std::max(answer_.worker_bytes_in, answer_.worker_bytes_out) / q_.network_bytes_per_second;
    server_link_ =
        std::max(answer_.server_bytes_in, answer_.server_bytes_out) / q_.network_bytes_per_second;
    return std::max({step + allreduce_, worker_link_, server_link_});
  }

  void Step() {
    const double members = q_.one_machine ? workers() : 1;
    const double chain = answer_.exchange_seconds;
    double step = q_.one_machine ? StepOnOneMachine() : StepOverNetwork();
    const double server = server_push_ + server_pull_ + server_repair_;
    step = std::max({step, answer_.reader_seconds, server});
    answer_.step_seconds = step;
    answer_.examples_per_second = q_.batch / step;
    answer_.parts = {{"worker: products and layers", members * answer_.compute_seconds},
                     {"worker: its side of pull and push", chain},
                     {"worker: reading and deduplicating", answer_.reader_seconds},
                     {"worker: allreduce of dense gradients", allreduce_},
                     {"worker: link", worker_link_},
                     {"server: rows and messages", server},
                     {"server: link", server_link_}};
    for (size_t p = 0; p < answer_.parts.size(); ++p) {
      if (answer_.parts[p].seconds > answer_.parts[answer_.bottleneck].seconds) {
        answer_.bottleneck = p;
      }
    }
  }

  void Memory() {
    double row_bytes = 0, row_floats = 0;
    for (const JobShape::Table& table : q_.shape.tables) {
      row_bytes += static_cast<double>(table.row_bytes);
      row_floats += table.dim + table.state_floats;
    }
    const auto tables = static_cast<double>(q_.shape.tables.size());
    const double dense =
        kFloatBytes * double(q_.shape.dense_floats + q_.shape.dense_state_floats) / servers();
    answer_.server_rows = q_.rows / servers();
    answer_.server_row_bytes = answer_.server_rows * row_bytes + dense;
    answer_.server_index_bytes = answer_.server_rows * tables * c_.index_row_bytes;
    // A worker's pull and its push at a time, and its key lists.
    const double rows_bytes = kFloatBytes * (asked_.floats + asked_.dense);
    const double each = (2 * rows_bytes + 2 * kKeyBytes * asked_.rows) / servers();
    answer_.server_buffer_bytes = workers() * each;
    const double batch_bytes = examples_ * (kKeyBytes * 1.5 * q_.shape.keys + 64);
    const double activations = 2 * kFloatBytes * examples_ / q_.micro_batches *
                               double(q_.shape.embedding_floats + 2 * q_.shape.activation_floats);
    constexpr double kBatchesReady = 6, kDenseCopies = 4;
    answer_.worker_bytes = (2 + q_.lookahead) * rows_bytes + kBatchesReady * batch_bytes +
                           activations + kDenseCopies * kFloatBytes * double(q_.shape.dense_floats);
    // Files hold every weight as a float, whatever its format in memory.
    checkpoint_bytes_ =
        answer_.server_rows * (kFloatBytes * row_floats + tables * kKeyBytes) + dense;
    answer_.checkpoint_bytes = checkpoint_bytes_ * servers();
  }

  void Recovery() {
    // Servers of one machine share its disk and its cores.
    const double sharing = q_.one_machine ? servers() : 1;
    const auto seconds = [&](double disk_ns, double core_ns) {
      return kNano * sharing * checkpoint_bytes_ * std::max(disk_ns, core_ns / q_.cores);
    };
    answer_.checkpoint_seconds = seconds(c_.disk_write_byte_ns, c_.save_byte_ns);
    answer_.detect_seconds = q_.dead_after_seconds;
    answer_.load_seconds = seconds(c_.disk_read_byte_ns, c_.load_byte_ns);
    // On average half of what lies between two checkpoints.
    answer_.redo_seconds = 0.5 * double(q_.checkpoint_every_steps) * answer_.step_seconds;
    answer_.recovery_seconds =
        answer_.detect_seconds + c_.start_seconds + answer_.load_seconds + answer_.redo_seconds;
  }

  const PlanQuestion& q_;
  const MachineConstants& c_;
  const double examples_;  // Of one worker's step.
  Asked asked_;
  PlanAnswer answer_;
  double part_share_ = 1;                     // Distinct among the keys of a micro-batch.
  double parts_rows_ = 0, parts_floats_ = 0;  // Of all micro-batches of a step.
  double allreduce_ = 0, worker_link_ = 0, server_link_ = 0;
  double server_pull_ = 0, server_push_ = 0, server_repair_ = 0;  // Seconds of one server a step.
  double pull_bytes_ = 0, push_bytes_ = 0, repair_bytes_ = 0;     // Of one worker.
  double checkpoint_bytes_ = 0;                                   // Of one server.
};

}  // namespace

PlanAnswer Plan(const PlanQuestion& question, const MachineConstants& constants) {
  return Planner(question, constants).Run();
}

}  // namespace hdps
