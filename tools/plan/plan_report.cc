// Formats a plan as text and as JSON.
#include "tools/plan/plan_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/byte_count.h"
#include "common/base/outside_text.h"
#include "common/base/show_number.h"

namespace hdps {
namespace {

std::string Bytes(double bytes) { return ShowByteCount(static_cast<uint64_t>(bytes)); }

// Shows milliseconds below a second.
std::string Time(double seconds) {
  if (seconds < 1) return ShowNumber("%.3g ms", seconds * 1e3);
  if (seconds < 600) return ShowNumber("%.3g s", seconds);
  return ShowNumber("%.0f min", seconds / 60);
}

std::string Line(const std::string& name, const std::string& text) {
  std::string line = name;
  line.resize(std::max<size_t>(line.size() + 1, 13), ' ');
  return line + text + "\n";
}

std::string Link(const std::string& who, double in, double out, double step_seconds) {
  return who + " " + Bytes(in) + " in, " + Bytes(out) + " out a step; " + Bytes(in / step_seconds) +
         "/s in, " + Bytes(out / step_seconds) + "/s out";
}

}  // namespace

std::string PlanText(const PlanSubject& subject, const PlanQuestion& question,
                     const PlanAnswer& answer) {
  const double step = answer.step_seconds;
  std::string text;
  text += Line("job", subject.job_name + ": " + subject.model + ", " + subject.mode + ", batch " +
                          ShowWhole(question.batch) + " of " + std::to_string(question.workers) +
                          (question.workers == 1 ? " worker" : " workers together"));
  const std::string where =
      question.one_machine
          ? "all on one machine of " + std::to_string(question.cores) +
                (question.cores == 1 ? " core" : " cores")
          : (question.machines == 0 ? "a machine of "
                                    : std::to_string(question.machines) + " machines of ") +
                std::to_string(question.cores) + (question.cores == 1 ? " core" : " cores") +
                " each, network " + subject.network;
  text += Line("cluster", std::to_string(question.servers) + " servers, " +
                              std::to_string(question.workers) + " workers, " + where);
  text +=
      Line("constants", subject.constants.empty()
                            ? "those of the machine that hdps was developed on; measure yours with "
                              "hdps-bench constants --json=FILE and give --constants=FILE"
                            : subject.constants);
  text += "\n";
  text += Line("speed",
               ShowWhole(answer.examples_per_second) + " examples/s, a step takes " + Time(step));
  text += Line(
      "step",
      "compute " + Time(answer.compute_seconds) + " (products " + Time(answer.products_seconds) +
          (answer.first_layer_on_rows ? ", the first layer on distinct rows" : "") +
          (subject.bf16 ? ", predicted as in fp32" : "") + "), push and rows " +
          Time(answer.exchange_seconds) + ", reading beside it " + Time(answer.reader_seconds));
  text += Line("keys", ShowNumber("%.1f %%", 100 * answer.unique_share) +
                           " of a worker's keys of a step are distinct");
  if (question.lookahead > 0) {
    text += Line("rows", "asked for while the step before computes, " +
                             (question.sync ? ShowNumber("%.0f %%", 100 * answer.changed_share) +
                                                  " come again, changed by its push"
                                            : std::string("none comes again")));
  } else {
    text += Line("rows", "asked for behind the push of the step before (train.lookahead is 0)");
  }
  if (answer.first_epoch_seconds > 0) {
    text += Line("reader", std::string("finding the ends of all lines takes ") +
                               Time(answer.first_epoch_seconds) + " of a step" +
                               (question.first_epoch ? ", but not in later epochs"
                                                     : " more in the first epoch"));
  }
  text += Line("new rows", "a step takes up to " + Time(answer.new_rows_seconds) +
                               " more while its rows are not there yet");
  text += Line("links", Link("worker", answer.worker_bytes_in, answer.worker_bytes_out, step));
  text += Line("", Link("server", answer.server_bytes_in, answer.server_bytes_out, step));
  if (question.machines > 0) {
    text += Line("", Link("machine", answer.machine_bytes, answer.machine_bytes, step));
  }
  const double server =
      answer.server_row_bytes + answer.server_index_bytes + answer.server_buffer_bytes;
  text += Line("memory", "server " + Bytes(server) + ": rows with state " +
                             Bytes(answer.server_row_bytes) + ", index " +
                             Bytes(answer.server_index_bytes) + ", messages " +
                             Bytes(answer.server_buffer_bytes));
  text += Line("", "worker " + Bytes(answer.worker_bytes) + ", and at most " +
                       Bytes(answer.device_bytes) + " of a GPU, if it has one");
  if (question.kept_example_bytes > 0) {
    text += Line("", "parsed rows take " + Bytes(question.kept_example_bytes) +
                         " an example, and at most " +
                         ShowNumber("%.3g %%", 100 * question.kept_examples_share) +
                         " of the memory of a process with workers (data.cache, data.cache_share)");
  }
  if (question.row_memory_bytes >= 0) {
    text +=
        Line("disk", ShowNumber("%.0f %%", 100 * answer.share_in_memory) +
                         " of the rows in memory, under cluster.memory_limit; " +
                         ShowWhole(static_cast<uint64_t>(answer.rows_back)) +
                         " come back a step, " + Time(answer.rows_back_seconds) + " of one core");
    if (!subject.too_small.empty()) text += Line("", "too small: " + subject.too_small);
  }
  text +=
      Line("checkpoint", Bytes(answer.checkpoint_bytes) + " in " + Time(answer.checkpoint_seconds));
  text +=
      Line("recovery",
           Time(answer.recovery_seconds) + ": noticed after " + Time(answer.detect_seconds) +
               ", loading " + Time(answer.load_seconds) +
               (answer.redo_seconds > 0 ? ", training again " + Time(answer.redo_seconds)
                                        : "; then all steps anew, as checkpoint.every_steps is 0"));
  text +=
      "\n" + Line("bottleneck", answer.parts[answer.bottleneck].name + ", busy " +
                                    Time(answer.parts[answer.bottleneck].seconds) + " of a step");
  for (const PlanPart& part : answer.parts) {
    if (part.seconds == 0) continue;
    std::string name = "  " + part.name;
    name.resize(std::max<size_t>(name.size() + 1, 42), ' ');
    text += name + Time(part.seconds) + "\n";
  }
  return text;
}

std::string PlanJson(const PlanSubject& subject, const PlanQuestion& question,
                     const PlanAnswer& answer) {
  nlohmann::ordered_json json = {{"job", subject.job_name},
                                 {"model", subject.model},
                                 {"mode", subject.mode},
                                 {"batch", question.batch},
                                 {"servers", question.servers},
                                 {"workers", question.workers},
                                 {"machines", question.machines},
                                 {"cores", question.cores},
                                 {"network", subject.network},
                                 {"constants", subject.constants},
                                 {"rows", question.rows},
                                 {"examples_per_second", answer.examples_per_second},
                                 {"step_seconds", answer.step_seconds},
                                 {"compute_seconds", answer.compute_seconds},
                                 {"products_seconds", answer.products_seconds},
                                 {"exchange_seconds", answer.exchange_seconds},
                                 {"reader_seconds", answer.reader_seconds},
                                 {"first_epoch_seconds", answer.first_epoch_seconds},
                                 {"new_rows_seconds", answer.new_rows_seconds},
                                 {"first_layer_on_rows", answer.first_layer_on_rows},
                                 {"changed_share", answer.changed_share},
                                 {"unique_share", answer.unique_share},
                                 {"worker_bytes_in", answer.worker_bytes_in},
                                 {"worker_bytes_out", answer.worker_bytes_out},
                                 {"server_bytes_in", answer.server_bytes_in},
                                 {"server_bytes_out", answer.server_bytes_out},
                                 {"machine_bytes", answer.machine_bytes},
                                 {"kept_rows_seconds", answer.kept_rows_seconds},
                                 {"server_row_bytes", answer.server_row_bytes},
                                 {"server_index_bytes", answer.server_index_bytes},
                                 {"server_buffer_bytes", answer.server_buffer_bytes},
                                 {"worker_memory_bytes", answer.worker_bytes},
                                 {"device_memory_bytes", answer.device_bytes},
                                 {"cache_example_bytes", question.kept_example_bytes},
                                 {"cache_share", question.kept_examples_share},
                                 {"share_in_memory", answer.share_in_memory},
                                 {"rows_back", answer.rows_back},
                                 {"rows_back_seconds", answer.rows_back_seconds},
                                 {"memory_limit_too_small", subject.too_small},
                                 {"checkpoint_bytes", answer.checkpoint_bytes},
                                 {"checkpoint_seconds", answer.checkpoint_seconds},
                                 {"recovery_seconds", answer.recovery_seconds},
                                 {"bottleneck", answer.parts[answer.bottleneck].name}};
  for (const PlanPart& part : answer.parts) json["busy_seconds"][part.name] = part.seconds;
  return EscapeJson(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n";
}

}  // namespace hdps
