// Draws clusters and their faults.
#include "tests/sim/mixed.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hdps::sim {
namespace {

constexpr TimeMs kFirstFaultWithin = 2500, kNextFaultWithin = 3000;

TimeMs Between(Random* random, TimeMs least, TimeMs most) {
  return least + static_cast<TimeMs>(random->Below(static_cast<uint64_t>(most - least + 1)));
}

// Picks a member that is there from the start, or the scheduler.
Fault AnyMember(const ClusterOptions& options, Random* random) {
  const uint64_t who = random->Below(1 + options.num_servers + options.num_workers);
  Fault fault;
  if (who == 0) {
    fault.role = Role::kScheduler;
  } else if (who <= options.num_servers) {
    fault.rank = static_cast<uint32_t>(who - 1);
  } else {
    fault.role = Role::kWorker;
    fault.rank = static_cast<uint32_t>(who - 1 - options.num_servers);
  }
  return fault;
}

// Picks each place with the same chance.
std::set<uint64_t> AnyPlaces(const ClusterOptions& options, bool servers_only, Random* random) {
  std::set<uint64_t> places;
  const auto draw = [&](uint64_t place) {
    if (random->Below(2) == 0) places.insert(place);
  };
  for (uint32_t s = 0; s < options.num_servers; ++s) draw(kServerPlaces + s);
  if (servers_only) return places;
  draw(kSchedulerPeer.value);
  for (uint32_t w = 0; w < options.num_workers; ++w) draw(kWorkerPlaces + w);
  return places;
}

// Adds two kills at nearly the same time: the second during the recovery from the first.
void AddTwoKills(const ClusterOptions& options, Random* random, TimeMs at,
                 std::vector<Fault>* faults) {
  for (int i = 0; i < 2; ++i) {
    Fault fault = AnyMember(options, random);
    fault.at = at + Between(random, 0, 500);
    faults->push_back(fault);
  }
}

// Adds a kill of one member, of one that has died before, of two, or of all at once.
void AddKill(const ClusterOptions& options, Random* random, TimeMs at, std::vector<Fault>* faults) {
  if (random->Below(3) == 0) return AddTwoKills(options, random, at, faults);
  const auto died = std::ranges::find(*faults, Fault::Kind::kKill, &Fault::kind);
  Fault fault = AnyMember(options, random);
  if (died != faults->end() && random->Below(3) == 0) fault = *died;
  fault.at = at;
  if (random->Below(3) == 0) fault.kind = Fault::Kind::kPowerLoss;
  if (random->Below(8) > 0) return faults->push_back(fault);
  fault.role = Role::kScheduler;
  fault.disk_too = true;
  faults->push_back(fault);
  for (const Role role : {Role::kServer, Role::kWorker}) {
    fault.role = role;
    const uint32_t count = role == Role::kServer ? options.num_servers : options.num_workers;
    for (fault.rank = 0; fault.rank < count; ++fault.rank) faults->push_back(fault);
  }
}

void AddFault(const ClusterOptions& options, Random* random, TimeMs at,
              std::vector<Fault>* faults) {
  const uint64_t kind = random->Below(100);
  if (kind < 30) return AddKill(options, random, at, faults);
  Fault fault;
  fault.at = at;
  if (kind < 40) {
    fault = AnyMember(options, random);
    fault.kind = Fault::Kind::kStandstill;
    fault.lasts = Between(random, 50, 6000);
  } else if (kind < 60) {
    fault.kind = Fault::Kind::kPartition;
    fault.places = AnyPlaces(options, false, random);
    fault.lasts = Between(random, 50, 6000);
    const uint64_t ways = random->Below(4);  // Both in half of the cases.
    fault.out = ways != 0;
    fault.in = ways != 1;
  } else if (kind < 72) {
    fault.kind = Fault::Kind::kSlowDisk;
    fault.places = AnyPlaces(options, false, random);
    fault.lasts = Between(random, 500, 5000);
  } else if (kind < 77) {
    fault.kind = Fault::Kind::kFullDisk;
    fault.places = AnyPlaces(options, true, random);
    fault.lasts = Between(random, 300, 3000);
  } else if (kind < 85) {
    fault.kind = Fault::Kind::kJoin;
    fault.role = random->Below(2) == 0 ? Role::kServer : Role::kWorker;
    const uint32_t ranks = fault.role == Role::kServer ? options.num_servers : options.num_workers;
    fault.asks = static_cast<int32_t>(random->Below(ranks + 1)) - 1;
    fault.other_job = random->Below(4) == 0;
  } else {
    fault.kind = Fault::Kind::kScale;
    if (random->Below(2) == 0) AddTwoKills(options, random, at, faults);
    const int32_t more = random->Below(2) == 0 ? 1 : -1;
    (random->Below(2) == 0 ? fault.servers : fault.workers) = more;
    fault.lasts = Between(random, 0, 2000);
  }
  fault.at = at;
  faults->push_back(std::move(fault));
}

// Tells one to three processes to leave, often while something else happens. In a draw of its own:
// what else a seed draws is what it was.
void AddLeaves(const ClusterOptions& options, uint64_t seed, TimeMs last,
               std::vector<Fault>* faults) {
  Random random(MixBits(seed) ^ 0x1eafu);
  if (random.Below(3) > 0) return;
  for (uint64_t left = 1 + random.Below(3); left > 0; --left) {
    Fault fault = AnyMember(options, &random);
    fault.kind = Fault::Kind::kLeave;
    fault.at = Between(&random, 0, std::max<TimeMs>(last + 500, kFirstFaultWithin));
    fault.lasts = Between(&random, 100, 8000);
    faults->push_back(fault);
  }
}

// Tells the job to stop, kills its launcher, or both, while others die.
void AddEnd(const ClusterOptions& options, Random* random, TimeMs at, std::vector<Fault>* faults) {
  constexpr TimeMs kDrainMs = 1500;
  const uint64_t how = random->Below(4);  // 0: only the launcher is killed.
  if (how > 0) {
    Fault stop = AnyMember(options, random);
    const bool of_member = stop.role != Role::kScheduler && random->Below(4) == 0;
    stop.kind = of_member ? Fault::Kind::kStop : Fault::Kind::kDrain;
    stop.at = at;
    faults->push_back(stop);
    if (random->Below(3) > 0) {
      AddTwoKills(options, random, at + Between(random, 0, kDrainMs - 500), faults);
    }
  }
  if (how <= 1) {
    faults->push_back({.at = at + Between(random, 0, kDrainMs), .kind = Fault::Kind::kEnd});
  }
}

Outcome Both(Outcome first, Outcome second) {
  second.trace = first.trace * 31 + second.trace;
  second.frames += first.frames;
  second.loaded |= first.loaded;
  second.restarted += first.restarted;
  second.went_back += first.went_back;
  second.replaced += first.replaced;
  second.taken_over += first.taken_over;
  second.scaled += first.scaled;
  second.promoted += first.promoted;
  second.power_lost += first.power_lost;
  second.refused += first.refused;
  second.stood_by += first.stood_by;
  second.leaves += first.leaves;
  second.stopped = first.stopped;
  second.ended_by_fault = first.ended_by_fault;
  return second;
}

}  // namespace

Outcome RunToItsEnd(const ClusterOptions& options, FileSystem* files, TimeMs until) {
  std::optional<StepHistory> history;
  Outcome first;
  {
    Cluster cluster(options, files);
    first = cluster.Run(until);
    history = cluster.history();
  }
  const bool goes_on = first.ended_by_fault || (first.stopped && first.good());
  if (!goes_on || !first.problems.empty()) return first;
  ClusterOptions next = options;
  ++next.incarnation;
  next.faults = options.faults_of_next;
  next.history_before = history;
  return Both(std::move(first), Cluster(next, files).Run(until));
}

std::string DescribeDraw(const ClusterOptions& options) {
  const char* const kinds[] = {"kill",      "power loss", "loss",      "standstill", "partition",
                               "slow disk", "full disk",  "drain",     "scale",      "join",
                               "leave",     "stop",       "end of all"};
  const auto number = [](auto count) { return std::to_string(count); };
  std::string text = std::string(WordOf(options.mode)) + ", " + number(options.num_servers) +
                     " servers, " + number(options.num_workers) + " workers, " +
                     number(options.replicas) + " replicas, checkpoint every " +
                     number(options.checkpoint_every) + ", delta every " +
                     number(options.delta_every) + ", lost after " + number(options.dead_after_ms) +
                     " ms, started again after " + number(options.restart_after_ms) + " ms";
  std::vector<Fault> faults = options.faults;
  std::ranges::copy(options.faults_of_next, std::back_inserter(faults));
  for (const Fault& fault : faults) {
    text += "\n    at " + number(fault.at) + " " + kinds[static_cast<size_t>(fault.kind)];
    const bool of_member = fault.kind <= Fault::Kind::kStandstill ||
                           fault.kind == Fault::Kind::kLeave || fault.kind == Fault::Kind::kStop;
    if (of_member) text += std::string(" of ") + RoleName(fault.role) + " " + number(fault.rank);
    for (const uint64_t place : fault.places) text += " " + number(place);
    if (fault.lasts > 0) text += " for " + number(fault.lasts) + " ms";
    if (!fault.out) text += ", inwards only";
    if (!fault.in) text += ", outwards only";
    if (fault.kind == Fault::Kind::kJoin) {
      text += std::string(" of a ") + RoleName(fault.role) + " that asks for " +
              number(fault.asks) + (fault.other_job ? " in another job" : "");
    }
    if (fault.kind != Fault::Kind::kScale) continue;
    text += ": servers " + number(fault.servers) + ", workers " + number(fault.workers);
  }
  return text;
}

ClusterOptions DrawMixed(uint64_t seed) {
  Random random(MixBits(seed) ^ 0x313du);
  const Mode modes[] = {Mode::kSync, Mode::kSsp, Mode::kAsync};
  ClusterOptions options = DrawCluster(seed, modes[random.Below(3)]);
  options.outages = 0;
  options.num_servers = 1 + static_cast<uint32_t>(random.Below(3));
  options.num_workers = 1 + static_cast<uint32_t>(random.Below(3));
  if (random.Below(2) == 0) {
    options.replicas = static_cast<uint32_t>(random.Below(options.num_servers));
  }
  options.steps_per_epoch = Between(&random, 6, 12);
  options.checkpoint_every = random.Below(4) == 0 ? 0 : 3 + random.Below(6);
  options.delta_every = random.Below(3);
  options.rows_leave = options.mode == Mode::kSync && random.Below(2) == 0;
  options.weather.loss_percent = static_cast<uint32_t>(random.Below(3)) * 5;
  options.weather.repeat_percent = static_cast<uint32_t>(random.Below(3)) * 5;
  options.starts_within_ms = static_cast<TimeMs>(random.Below(2)) * 1500;
  options.restart_after_ms = Between(&random, 20, 2500);
  options.dead_after_ms = Between(&random, 1000, 3000);
  options.told_again = random.Below(2) == 0;
  TimeMs at = 0;
  for (uint64_t left = 1 + random.Below(4); left > 0; --left) {
    at += Between(&random, 0, at == 0 ? kFirstFaultWithin : kNextFaultWithin);
    AddFault(options, &random, at, &options.faults);
  }
  AddLeaves(options, seed, at, &options.faults);
  if (random.Below(4) == 0) {
    AddEnd(options, &random, Between(&random, 100, std::max<TimeMs>(at, 1000)), &options.faults);
    if (random.Below(2) == 0) {
      AddTwoKills(options, &random, Between(&random, 0, kFirstFaultWithin),
                  &options.faults_of_next);
    }
  }
  if (std::ranges::any_of(options.faults, [](const Fault& fault) {
        return fault.kind == Fault::Kind::kDrain || fault.kind >= Fault::Kind::kStop;
      })) {
    // Another run does not know workers that joined or left.
    std::erase_if(options.faults, [](const Fault& fault) { return fault.workers != 0; });
  }
  for (std::vector<Fault>* faults : {&options.faults, &options.faults_of_next}) {
    std::ranges::stable_sort(*faults, {}, &Fault::at);
  }
  return options;
}

}  // namespace hdps::sim
