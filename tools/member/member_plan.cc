// Reads the variables of MindSpore, ps-lite, MPI and Slurm.
#include "tools/member/member_plan.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>
#include <vector>

#include "common/base/nearest_name.h"

namespace hdps {
namespace {

constexpr std::string_view kVariables[] = {"MS_ROLE",
                                           "DMLC_ROLE",
                                           "MS_NODE_ID",
                                           "MS_SERVER_NUM",
                                           "DMLC_NUM_SERVER",
                                           "MS_WORKER_NUM",
                                           "DMLC_NUM_WORKER",
                                           "MS_SCHED_HOST",
                                           "MS_SCHED_PORT",
                                           "DMLC_PS_ROOT_URI",
                                           "DMLC_PS_ROOT_PORT",
                                           "PMIX_RANK",
                                           "PMI_RANK",
                                           "OMPI_COMM_WORLD_RANK",
                                           "SLURM_PROCID",
                                           "PMI_SIZE",
                                           "OMPI_COMM_WORLD_SIZE",
                                           "SLURM_NTASKS",
                                           "OMPI_COMM_WORLD_LOCAL_RANK",
                                           "MPI_LOCALRANKID",
                                           "SLURM_LOCALID",
                                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                                           "MPI_LOCALNRANKS",
                                           "SLURM_STEP_NUM_NODES",
                                           "SLURM_NNODES",
                                           "KUBERNETES_SERVICE_HOST"};

struct RoleWord {
  std::string_view variable, word;
  Role role;
};
constexpr RoleWord kRoleWords[] = {
    {"--role", "scheduler", Role::kScheduler},    {"--role", "server", Role::kServer},
    {"--role", "worker", Role::kWorker},          {"MS_ROLE", "MS_SCHED", Role::kScheduler},
    {"MS_ROLE", "MS_PSERVER", Role::kServer},     {"MS_ROLE", "MS_WORKER", Role::kWorker},
    {"DMLC_ROLE", "scheduler", Role::kScheduler}, {"DMLC_ROLE", "server", Role::kServer},
    {"DMLC_ROLE", "worker", Role::kWorker},
};

Status Mistake(const std::string& message) { return Status(Code::kInvalidArgument, message); }

// A number, and the variable that it came from.
struct Found {
  std::string variable;
  uint32_t value = 0;
  std::string Shown() const { return variable + "=" + std::to_string(value); }
};

// Looks variables up, and refuses values that contradict each other.
class Environment {
 public:
  explicit Environment(const Variables& variables) : variables_(variables) {}

  std::string Text(std::string_view name) const {
    const auto found = variables_.find(std::string(name));
    return found == variables_.end() ? "" : found->second;
  }
  // Returns the number that the variables of these names hold, of which all that are set must hold
  // the same.
  Result<std::optional<Found>> Number(std::initializer_list<std::string_view> names) const {
    std::optional<Found> found;
    for (const std::string_view name : names) {
      const std::string text = Text(name);
      if (text.empty()) continue;
      Found next{std::string(name), 0};
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), next.value);
      if (error != std::errc() || end != text.data() + text.size()) {
        return Mistake(next.variable + "=" + text + " is no whole number; its launcher sets one");
      }
      if (found && found->value != next.value) return Contradiction(found->Shown(), next.Shown());
      if (!found) found = next;
    }
    return found;
  }
  static Status Contradiction(const std::string& one, const std::string& other) {
    return Mistake(one + " and " + other +
                   " contradict each other; unset one of them, or give the flag or its HDPS_ "
                   "variable, which wins");
  }

 private:
  const Variables& variables_;
};

Result<Role> RoleOf(const std::string& variable, const std::string& word) {
  std::vector<std::string> words;
  for (const RoleWord& one : kRoleWords) {
    if (one.variable != variable) continue;
    if (one.word == word) return one.role;
    words.emplace_back(one.word);
  }
  return Mistake(variable + "=" + word + " is no role" + DidYouMean(word, words) + "; give " +
                 words[0] + ", " + words[1] + " or " + words[2]);
}

// Returns the role that a word tells; nothing if there is none.
Result<std::optional<Role>> ToldRole(const GivenMember& given, const Environment& environment) {
  std::optional<Role> role;
  if (!given.role.empty()) {
    HDPS_ASSIGN_OR_RETURN(role, RoleOf("--role", given.role));
    return role;
  }
  std::string from;
  for (const std::string variable : {"MS_ROLE", "DMLC_ROLE"}) {
    const std::string word = environment.Text(variable);
    if (word.empty()) continue;
    HDPS_ASSIGN_OR_RETURN(const Role next, RoleOf(variable, word));
    const std::string shown = variable + "=" + word;
    if (role && *role != next) return Environment::Contradiction(from, shown);
    role = next;
    from = shown;
  }
  return role;
}

// The number of this process among all of the job, as a launcher tells it.
struct Launch {
  std::optional<Found> number, size, number_here, size_here;
  bool one_machine = true;
};

// Where mpirun runs inside a job of Slurm, Slurm's numbers are those of mpirun's own helpers: they
// count only where no MPI has numbered the process, or has numbered it the same.
Result<Launch> ReadLaunch(const Environment& environment) {
  Launch launch;
  HDPS_ASSIGN_OR_RETURN(launch.number,
                        environment.Number({"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"}));
  HDPS_ASSIGN_OR_RETURN(launch.size, environment.Number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}));
  HDPS_ASSIGN_OR_RETURN(launch.number_here,
                        environment.Number({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"}));
  HDPS_ASSIGN_OR_RETURN(launch.size_here,
                        environment.Number({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}));
  if (launch.size && launch.size_here) {
    launch.one_machine = launch.size->value == launch.size_here->value;
  }
  HDPS_ASSIGN_OR_RETURN(const std::optional<Found> task, environment.Number({"SLURM_PROCID"}));
  const bool by_slurm =
      task && !launch.size && (!launch.number || launch.number->value == task->value);
  if (!by_slurm) return launch;
  launch.number = task;
  HDPS_ASSIGN_OR_RETURN(launch.size, environment.Number({"SLURM_NTASKS"}));
  HDPS_ASSIGN_OR_RETURN(launch.number_here, environment.Number({"SLURM_LOCALID"}));
  HDPS_ASSIGN_OR_RETURN(std::optional<Found> nodes, environment.Number({"SLURM_STEP_NUM_NODES"}));
  if (!nodes) {
    HDPS_ASSIGN_OR_RETURN(nodes, environment.Number({"SLURM_NNODES"}));
  }
  launch.one_machine = !nodes || nodes->value == 1;
  return launch;
}

std::string Counted(uint32_t servers, uint32_t workers) {
  return "1 scheduler, " + std::to_string(servers) + (servers == 1 ? " server" : " servers") +
         " and " + std::to_string(workers) + (workers == 1 ? " worker" : " workers");
}

// Fills the numbers of servers and workers where the number of all processes tells one of them.
Status FillCounts(const Launch& launch, MemberPlan* plan) {
  std::optional<uint32_t>&servers = plan->servers, &workers = plan->workers;
  const std::string number = launch.number->Shown();
  if (!servers && !workers) {
    return Mistake(number +
                   " tells the role only where the number of servers is known; give "
                   "--servers=M, or the role itself as HDPS_ROLE");
  }
  if (!launch.size && (!servers || !workers)) {
    return Mistake(number +
                   " tells the role only where both numbers are known; give --servers=M "
                   "and --workers=N");
  }
  if (!launch.size) return {};
  const uint32_t size = launch.size->value;
  const uint32_t known = 1 + servers.value_or(0) + workers.value_or(0);
  if (!servers || !workers) {
    if (size <= known) {
      return Mistake(launch.size->Shown() + " leaves no " + (servers ? "worker" : "server") +
                     " beside 1 scheduler and " + (servers ? "--servers=" : "--workers=") +
                     std::to_string(known - 1) + "; start at least " + std::to_string(known + 1) +
                     " processes");
    }
    (servers ? workers : servers) = size - known;
  } else if (size != known) {
    return Mistake(launch.size->Shown() + ", but " + Counted(*servers, *workers) + " are " +
                   std::to_string(known) +
                   " processes; start as many, or change --servers or "
                   "--workers");
  }
  return {};
}

// The role and rank by the number among all: first the scheduler, then servers, then workers.
Status TakeNumber(const Launch& launch, MemberPlan* plan) {
  HDPS_RETURN_IF_ERROR(FillCounts(launch, plan));
  const uint32_t number = launch.number->value, servers = *plan->servers, workers = *plan->workers;
  if (number == 0) {
    plan->role = Role::kScheduler;
  } else if (number <= servers) {
    plan->role = Role::kServer;
    plan->rank = static_cast<int32_t>(number - 1);
  } else if (number - servers <= workers) {
    plan->role = Role::kWorker;
    plan->rank = static_cast<int32_t>(number - servers - 1);
  } else {
    return Mistake(launch.number->Shown() + " is beyond all: " + Counted(servers, workers) +
                   " have the numbers 0 to " + std::to_string(servers + workers) +
                   "; start fewer processes, or raise --servers or --workers");
  }
  return {};
}

// Takes the rank of MindSpore's MS_NODE_ID, which may also be the name of a pod.
Status TakeNodeId(const Environment& environment, MemberPlan* plan) {
  const std::string id = environment.Text("MS_NODE_ID");
  if (id.empty() || !std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; })) {
    return {};
  }
  HDPS_ASSIGN_OR_RETURN(const std::optional<Found> rank, environment.Number({"MS_NODE_ID"}));
  if (plan->rank >= 0 && static_cast<uint32_t>(plan->rank) != rank->value) {
    return Environment::Contradiction(rank->Shown(), "a number among all that makes this " +
                                                         std::string(RoleName(plan->role)) + " " +
                                                         std::to_string(plan->rank));
  }
  plan->rank = static_cast<int32_t>(rank->value);
  return {};
}

// Checks that MindSpore and ps-lite name the same scheduler, each with a port.
Status CheckAddresses(const Environment& environment) {
  std::string first;
  for (const auto& [host, port] : {std::pair("MS_SCHED_HOST", "MS_SCHED_PORT"),
                                   std::pair("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT")}) {
    const std::string name = environment.Text(host), number = environment.Text(port);
    if (name.empty() != number.empty()) {
      const char* const missing = name.empty() ? host : port;
      return Mistake(std::string(name.empty() ? port : host) + "=" + name + number +
                     " is set without " + missing + "; set both, or give --scheduler=ADDRESS");
    }
    if (name.empty()) continue;
    const std::string address = name + ":" + number;
    if (!first.empty() && first != address) {
      return Environment::Contradiction("MS_SCHED_HOST and MS_SCHED_PORT (" + first + ")",
                                        "DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT (" + address + ")");
    }
    first = address;
  }
  return {};
}

Result<std::optional<uint32_t>> CountOf(std::optional<uint32_t> given,
                                        const Environment& environment,
                                        std::initializer_list<std::string_view> names) {
  if (given) return given;
  HDPS_ASSIGN_OR_RETURN(const std::optional<Found> found, environment.Number(names));
  return found ? std::optional(found->value) : std::nullopt;
}

Status TakeRestart(const std::string& restart, const Environment& environment, MemberPlan* plan) {
  if (!restart.empty() && restart != "never" && restart != "on-failure") {
    return Mistake("--restart=" + restart + ": expected never or on-failure");
  }
  plan->restart = restart.empty()
                      ? plan->launched && environment.Text("KUBERNETES_SERVICE_HOST").empty()
                      : restart == "on-failure";
  return {};
}

}  // namespace

std::span<const std::string_view> MemberVariables() { return kVariables; }

Result<MemberPlan> PlanMember(const GivenMember& given, const Variables& variables) {
  const Environment environment(variables);
  MemberPlan plan;
  HDPS_ASSIGN_OR_RETURN(plan.servers,
                        CountOf(given.servers, environment, {"MS_SERVER_NUM", "DMLC_NUM_SERVER"}));
  HDPS_ASSIGN_OR_RETURN(plan.workers,
                        CountOf(given.workers, environment, {"MS_WORKER_NUM", "DMLC_NUM_WORKER"}));
  if (!given.scheduler) HDPS_RETURN_IF_ERROR(CheckAddresses(environment));
  for (const auto& [count, name] :
       {std::pair(plan.servers, "servers"), std::pair(plan.workers, "workers")}) {
    constexpr uint32_t kCountMax = 4096;
    if (count && (*count == 0 || *count > kCountMax)) {
      return Mistake("--" + std::string(name) + "=" + std::to_string(*count) +
                     " is out of range; give 1 to " + std::to_string(kCountMax));
    }
  }
  HDPS_ASSIGN_OR_RETURN(const Launch launch, ReadLaunch(environment));
  plan.launched = launch.number.has_value();
  plan.one_machine = launch.one_machine;
  if (launch.number_here) plan.number_here = launch.number_here->value;
  HDPS_ASSIGN_OR_RETURN(const std::optional<Role> told, ToldRole(given, environment));
  if (told) {
    plan.role = *told;
  } else if (launch.number) {
    HDPS_RETURN_IF_ERROR(TakeNumber(launch, &plan));
  } else {
    return Mistake(
        "no variable tells the role of this member; set HDPS_ROLE to scheduler, server "
        "or worker, or start it by mpirun or srun");
  }
  if (plan.role == Role::kScheduler) {
    plan.rank = -1;
  } else if (given.rank) {
    plan.rank = *given.rank;
  } else {
    HDPS_RETURN_IF_ERROR(TakeNodeId(environment, &plan));
  }
  HDPS_RETURN_IF_ERROR(TakeRestart(given.restart, environment, &plan));
  return plan;
}

}  // namespace hdps
