// Checks the outcome of a cluster: ends, rows, copies and promises.
#include <glog/logging.h>

#include <algorithm>

#include "common/job/job_spec.h"
#include "scheduler/report/run_summary.h"
#include "tests/sim/cluster.h"

namespace hdps::sim {
namespace {

void AddCounters(const ServerCounters& from, ServerCounters* to) {
  to->pulls += from.pulls;
  to->pulls_parked += from.pulls_parked;
  to->pushes += from.pushes;
  to->pushes_repeated += from.pushes_repeated;
  to->pushes_too_old += from.pushes_too_old;
  to->steps += from.steps;
  to->refused += from.refused;
  to->dropped += from.dropped;
  to->staleness_max = std::max(to->staleness_max, from.staleness_max);
}

}  // namespace

std::string Outcome::Describe() const {
  std::string text = std::string(finished ? "" : "did not finish; ") +
                     (exact ? "" : "final rows are not the sum of the pushes; ") +
                     std::to_string(ended_at) + " ms, " + std::to_string(frames) + " frames";
  for (size_t i = 0; i < problems.size() && i < 5; ++i) text += "\n  " + problems[i];
  return text;
}

Outcome Cluster::Judge(bool all_done) const {
  Outcome outcome;
  outcome.finished = all_done && scheduler_ != nullptr;
  outcome.trace = network_.trace();
  outcome.ended_at = network_.now();
  outcome.frames = network_.frames_delivered();
  outcome.problems = tally_.violations();
  outcome.loaded = loaded_;
  outcome.restarted = restarted_;
  outcome.went_back = went_back_;
  outcome.replaced = replaced_;
  outcome.taken_over = taken_over_;
  outcome.scaled = scaled_;
  outcome.promoted = promoted_;
  outcome.power_lost = power_lost_;
  outcome.leaves = NumberInSummary("leaves");
  outcome.steps_again = NumberInSummary("steps_again");
  if (scheduler_ == nullptr) {
    CheckEnd(&outcome);
    return outcome;
  }
  uint32_t excuses = unconfirmed_;
  const auto ended = [&](const std::string& who, PeerId peer, const Node& node) {
    const bool had_place = std::ranges::count(newest_view_.Holders(), peer, &Member::peer) +
                               std::ranges::count(newest_view_.workers, peer, &Member::peer) >
                           0;
    outcome.refused += node.done() && node.exit_status() == 2;
    outcome.stood_by +=
        node.done() && node.exit_status() == 0 && !had_place && peer != kSchedulerPeer;
    if (!node.done() || node.exit_status() == 0 || IsExcused(peer, node, &excuses)) return;
    outcome.finished = false;
    outcome.problems.push_back(who + " ended with " + std::to_string(node.exit_status()) + ": " +
                               node.exit_reason());
  };
  ended("scheduler", kSchedulerPeer, *scheduler_);
  for (uint32_t s = 0; s < servers_.size(); ++s) {
    if (servers_[s].node == nullptr) continue;
    ended("server " + std::to_string(s), PeerOf(Role::kServer, s), *servers_[s].node);
    AddCounters(servers_[s].node->counters(), &outcome.servers);
    outcome.server_readings[PeerOf(Role::kServer, s)] = servers_[s].node->ReadFigures();
  }
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    if (workers_[w].node == nullptr) continue;
    ended("worker " + std::to_string(w), PeerOf(Role::kWorker, w), *workers_[w].node);
    outcome.train_ms.push_back(workers_[w].compute->train_ms());
    const std::string& trouble = workers_[w].compute->trouble();
    if (!trouble.empty()) {
      outcome.problems.push_back("worker " + std::to_string(w) + ": " + trouble);
    }
  }
  if (options_.mode != Mode::kAsync && outcome.servers.staleness_max > options_.staleness_bound) {
    outcome.problems.push_back("a server saw a pull " +
                               std::to_string(outcome.servers.staleness_max) + " clocks ahead");
  }
  if (options_.never_fewer && views_of_fewer_ > 0) {
    outcome.problems.push_back("a view of fewer servers did not wait for those on their way");
  }
  CheckCopies(&outcome);
  CheckEnd(&outcome);
  return outcome;
}

void Cluster::CheckEnd(Outcome* outcome) const {
  if (const std::string why = launcher_.GaveUp(network_.now()); !why.empty()) {
    outcome->problems.push_back("the launcher ended a job that could go on: " + why);
  }
  outcome->ended_by_fault = ended_by_fault_;
  if (!outcome->finished) return;
  Clock steps = options_.steps_per_epoch * (options_.judged ? kJudgedEnd : options_.epochs);
  if (stop_asked_) {
    // Stopped before the first step, it has nothing to save.
    const auto saved = OpenCheckpoint(disk_.files(), kOut, WhichCheckpoint::kNewest);
    const Clock at = saved.ok() ? saved->manifest.clock : 0;
    outcome->stopped = at < steps;
    if (at < reached_ && outcome->stopped) {
      outcome->problems.push_back("told to stop behind step " + std::to_string(reached_) +
                                  ", the job has saved step " + std::to_string(at));
    }
    steps = std::min(steps, at);
  }
  if (digests_.empty()) {
    outcome->exact = (outcome->stopped && steps == 0) || (!loaded_ && SummaryIsOf(steps));
  }
  if (digests_.empty() || digests_.size() != digest_commands_.size()) return;
  RowsDigest actual;
  for (const auto& [peer, done] : digests_) {
    actual.Add({{done.digest[0], done.digest[1]}, done.rows});
  }
  const auto is = [&](Clock clock) {
    const RowsDigest expected =
        ExpectedDigest(job_->seed, tally_.history(), clock, options_.rows_leave);
    return actual.sum[0] == expected.sum[0] && actual.sum[1] == expected.sum[1] &&
           actual.rows == expected.rows;
  };
  outcome->exact = is(steps);
  for (Clock fewer = 0; fewer < steps && !outcome->exact; ++fewer) {
    if (!is(fewer)) continue;
    outcome->problems.push_back("ended with 0 at step " + std::to_string(fewer) + " of " +
                                std::to_string(steps));
    break;
  }
}

uint64_t Cluster::NumberInSummary(const std::string& field) const {
  const auto summary = ReadWholeFile(disk_.files(), JoinPath(kOut, "summary.json"), 1 << 20);
  if (!summary.ok()) return 0;
  const std::string name = "\"" + field + "\": ";
  const size_t at = summary->find(name);
  return at == std::string::npos ? 0 : std::stoull(summary->substr(at + name.size()));
}

bool Cluster::SummaryIsOf(Clock steps) const {
  if (!options_.history_before) return false;
  const RowsDigest expected =
      ExpectedDigest(job_->seed, *options_.history_before, steps, options_.rows_leave);
  const auto summary = ReadWholeFile(disk_.files(), JoinPath(kOut, "summary.json"), 1 << 20);
  return summary.ok() && summary->find(DigestText(expected.sum)) != std::string::npos;
}

bool Cluster::IsExcused(PeerId peer, const Node& node, uint32_t* excuses) const {
  if (peer == kSchedulerPeer || scheduler_->exit_status() != 0) return false;
  const auto is_there = [&](const std::vector<Member>& members) {
    return std::ranges::count(members, peer, &Member::peer) > 0;
  };
  const std::string& why = node.exit_reason();
  if (!is_there(newest_view_.Holders()) && !is_there(newest_view_.workers)) {
    // The member was declared lost and had no time to come again, or came when no member was
    // wanted. Only later processes ask for no rank, or have another job.
    const uint64_t place = PlaceOf(peer);
    const bool later = place >= kWorkerPlaces ? place >= kWorkerPlaces + options_.num_workers
                                              : place >= kServerPlaces + options_.num_servers;
    const bool not_wanted = later && (why.find("is one too many") != std::string::npos ||
                                      why.find("has another job") != std::string::npos);
    return node.exit_status() == 3 || (node.exit_status() == 2 && not_wanted);
  }
  if (node.exit_status() != 3 || *excuses == 0) return false;
  --*excuses;
  return true;
}

void Cluster::CheckCopies(Outcome* outcome) const {
  for (uint32_t group = 0; group < newest_view_.servers.size(); ++group) {
    const std::vector<Member> holders = newest_view_.HoldersOf({group});
    std::optional<RowsDigest> first;
    for (uint32_t s = 0; s < servers_.size(); ++s) {
      const ServerNode* const server = servers_[s].node.get();
      if (server == nullptr || !server->done() || server->exit_status() != 0) continue;
      if (std::ranges::count(holders, PeerOf(Role::kServer, s), &Member::peer) == 0) continue;
      const std::optional<Result<RowsDigest>> digest = server->DigestOf({group});
      if (!digest) continue;
      CHECK(digest->ok()) << digest->status().message();
      if (!first) first = **digest;
      if ((*digest)->rows == first->rows && (*digest)->sum[0] == first->sum[0] &&
          (*digest)->sum[1] == first->sum[1]) {
        continue;
      }
      outcome->problems.push_back("the copies of group " + std::to_string(group) + " differ");
    }
  }
}

}  // namespace hdps::sim
