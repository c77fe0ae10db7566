// A step as a sum of measured costs: the worker's chain of pull, compute and push, beside what each
// server, link and reader can do.
#include "tools/cost_model.h"

#include <algorithm>
#include <cmath>

namespace hdps {
namespace {

constexpr double kNano = 1e-9, kMicro = 1e-6;
constexpr double kFloatBytes = sizeof(float), kKeyBytes = 8;

// What one worker asks for in one step.
struct Asked {
  double rows = 0;    // Over all tables.
  double floats = 0;  // Of those rows.
  // What a push writes, in floats of a row with as much state as weights: what was measured.
  double pushed_floats = 0;
  double dense = 0;  // Floats through the servers.
  double reply_bytes() const { return kFloatBytes * (floats + dense); }
  double key_bytes() const { return kKeyBytes * rows; }
};

// Everything Plan() works out on the way.
class Planner {
 public:
  Planner(const PlanQuestion& question, const MachineConstants& constants)
      : q_(question), c_(constants), examples_(double(q_.batch) / q_.workers) {}

  PlanAnswer Run() {
    AskRows();
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

  void AskRows() {
    const double parts_keys = examples_ * q_.shape.keys;
    for (const JobShape::Table& table : q_.shape.tables) {
      const double keys = examples_ * table.features;
      double distinct = keys * q_.unique_share;
      if (q_.unique_share == 0) {
        const double values = std::max(q_.rows / std::max(q_.shape.keys, 1u), 1.0);
        distinct = table.features * ExpectedDistinct(values, q_.zipf, examples_);
      }
      asked_.rows += distinct;
      asked_.floats += distinct * table.dim;
      asked_.pushed_floats += distinct * (table.dim + table.state_floats) / 2;
      if (table.features == q_.shape.keys && parts_keys > 0) {
        answer_.unique_share = distinct / parts_keys;
      }
    }
    if (!q_.allreduce) asked_.dense = static_cast<double>(q_.shape.dense_floats);
  }

  // Products and layers of one worker, on all cores of its machine.
  void Compute() {
    const double part = examples_ / q_.micro_batches;
    double products = 0;
    constexpr double kPasses = 3;  // Forward, the weights' gradient, the input's gradient.
    for (const Product& product : q_.shape.products) {
      products += kPasses * product.flops() * examples_ /
                  (c_.GflopsFor(product.inputs, product.units, part) * 1e9);
    }
    const double layers =
        kNano * examples_ *
        (c_.model_example_ns + c_.model_embedding_float_ns * double(q_.shape.embedding_floats) +
         c_.model_activation_float_ns * double(q_.shape.activation_floats));
    // The rows of each part are cut out and their gradients added up again.
    const double merging = q_.micro_batches > 1
                               ? kNano * 2 * c_.inproc_push.float_ns * asked_.floats *
                                     std::min<double>(q_.micro_batches, 4)
                               : 0;
    const double faster = c_.cores / q_.cores;
    answer_.products_seconds = products * faster;
    answer_.compute_seconds = (products + layers) * faster + merging;
  }

  // One thread of the worker: it looks at all rows of the step, and parses its own.
  void Read() {
    const double own = examples_ * q_.text_row_bytes;
    const double others = own * (workers() - 1);
    answer_.reader_seconds = kNano * (own * c_.read_byte_ns + others * c_.scan_byte_ns +
                                      examples_ * q_.shape.keys * c_.dedup_key_ns);
  }

  double ChainOf(const ExchangeCost& cost, double floats) const {
    return kMicro * cost.base_us + kNano * (asked_.rows * cost.row_ns + floats * cost.float_ns +
                                            asked_.dense * cost.dense_float_ns);
  }

  void Exchange() {
    const ExchangeCost& pull = q_.inproc && q_.one_machine ? c_.inproc_pull : c_.tcp_pull;
    const ExchangeCost& push = q_.inproc && q_.one_machine ? c_.inproc_push : c_.tcp_push;
    const double messages = 2 * kMicro * c_.server_message_us;  // Of a pull and a push.
    const double chain = ChainOf(pull, asked_.floats) + ChainOf(push, asked_.pushed_floats) +
                         messages * (servers() - 1);
    worker_exchange_ = chain;
    server_seconds_ =
        workers() / servers() * kNano *
            (asked_.rows * (c_.server_pull_row_ns + c_.server_push_row_ns) +
             asked_.floats * c_.server_pull_float_ns +
             asked_.pushed_floats * c_.server_push_float_ns +
             asked_.dense * (c_.server_dense_pull_float_ns + c_.server_dense_push_float_ns)) /
            q_.cores +
        workers() * messages;
    answer_.worker_bytes_in = asked_.reply_bytes();
    answer_.worker_bytes_out = 2 * asked_.key_bytes() + asked_.reply_bytes();
    const double share = workers() / servers();
    answer_.server_bytes_in = share * answer_.worker_bytes_out;
    answer_.server_bytes_out = share * answer_.worker_bytes_in;
    AddAllreduce();
    if (q_.one_machine) {
      // Workers wait for each other's turns on the cores that an exchange keeps busy.
      const double busy = std::min<double>(c_.exchange_busy_cores, q_.cores);
      exchange_core_seconds_ = workers() * chain * busy;
      answer_.exchange_seconds = std::max(chain, exchange_core_seconds_ / q_.cores) + allreduce_;
      return;
    }
    // The measured chain went over a socket of one machine; here the network takes its place where
    // it is slower.
    const double bytes = answer_.worker_bytes_in + answer_.worker_bytes_out;
    const double socket = kNano * c_.wire_byte_ns * bytes;
    const double link = bytes / q_.network_bytes_per_second;
    worker_link_ =
        std::max(answer_.worker_bytes_in, answer_.worker_bytes_out) / q_.network_bytes_per_second;
    server_link_ =
        std::max(answer_.server_bytes_in, answer_.server_bytes_out) / q_.network_bytes_per_second;
    const double alone =
        chain + std::max(0.0, link - socket) + 2 * kMicro * q_.network_round_trip_us;
    exchange_core_seconds_ = chain;
    answer_.exchange_seconds = std::max({alone, server_seconds_, server_link_}) + allreduce_;
  }

  // Each rank sends and receives 2 (N - 1) / N of the gradients.
  void AddAllreduce() {
    if (!q_.allreduce || q_.workers == 1) return;
    const double bytes =
        2 * (workers() - 1) / workers() * kFloatBytes * static_cast<double>(q_.shape.dense_floats);
    const double wire = q_.one_machine ? workers() * kNano * c_.wire_byte_ns * bytes
                                       : bytes / q_.network_bytes_per_second;
    allreduce_ = wire + 2 * kMicro * std::max(q_.network_round_trip_us, c_.tcp_pull.base_us);
    answer_.worker_bytes_in += bytes;
    answer_.worker_bytes_out += bytes;
  }

  void Step() {
    const double members = q_.one_machine ? workers() : 1;
    const double compute = members * answer_.compute_seconds;
    const double exchange = answer_.exchange_seconds;
    const double reading = members * answer_.reader_seconds;  // Core seconds.
    double step = 0;
    if (q_.steps_ahead > 1) {
      const double cores = exchange_core_seconds_ + compute * q_.cores + reading;
      step = std::max({exchange, compute, cores / q_.cores});
    } else {
      // The reader works beside the step, but servers and layers would use its core as well.
      step = exchange + compute + reading / q_.cores;
    }
    step = std::max(step, answer_.reader_seconds);
    answer_.step_seconds = step;
    answer_.examples_per_second = q_.batch / step;
    answer_.parts = {{"worker: products and layers", compute},
                     {"worker: its side of pull and push", worker_exchange_},
                     {"worker: reading and deduplicating", answer_.reader_seconds},
                     {"worker: allreduce of dense gradients", allreduce_},
                     {"worker: link", worker_link_},
                     {"server: rows and messages", server_seconds_},
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
    // A worker's pull and its push at a time, each as request and as reply.
    const double each = (2 * asked_.reply_bytes() + 3 * asked_.key_bytes()) / servers();
    answer_.server_buffer_bytes = workers() * each;
    const double batch_bytes = examples_ * (kKeyBytes * 1.5 * q_.shape.keys + 64);
    const double activations = 2 * kFloatBytes * examples_ / q_.micro_batches *
                               double(q_.shape.embedding_floats + 2 * q_.shape.activation_floats);
    constexpr double kBatchesReady = 6, kDenseCopies = 4;
    answer_.worker_bytes = 2 * asked_.reply_bytes() + kBatchesReady * batch_bytes + activations +
                           kDenseCopies * kFloatBytes * double(q_.shape.dense_floats);
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
  double worker_exchange_ = 0, exchange_core_seconds_ = 0, allreduce_ = 0;
  double server_seconds_ = 0, worker_link_ = 0, server_link_ = 0;
  double checkpoint_bytes_ = 0;  // Of one server.
};

}  // namespace

double ExpectedDistinct(double count, double exponent, double draws) {
  // Values are summed one by one while they are few, then in ranges that grow by a hundredth.
  constexpr double kGrowth = 1.01;
  double mass = 0;
  for (double begin = 1; begin <= count; begin = std::max(begin + 1, std::floor(begin * kGrowth))) {
    const double end = std::min(std::max(begin + 1, std::floor(begin * kGrowth)), count + 1);
    mass += (end - begin) * std::pow((begin + end - 1) / 2, -exponent);
  }
  double distinct = 0;
  for (double begin = 1; begin <= count; begin = std::max(begin + 1, std::floor(begin * kGrowth))) {
    const double end = std::min(std::max(begin + 1, std::floor(begin * kGrowth)), count + 1);
    const double p = std::pow((begin + end - 1) / 2, -exponent) / mass;
    distinct += (end - begin) * -std::expm1(draws * std::log1p(-std::min(p, 1 - 1e-12)));
  }
  return distinct;
}

PlanAnswer Plan(const PlanQuestion& question, const MachineConstants& constants) {
  return Planner(question, constants).Run();
}

}  // namespace hdps
