// Builds the graph of a job's members: an edge leads to the member that another waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace hdps {

struct StatusReply;

// Returns the age at which a heartbeat is late. A wait shorter than this may be over already,
// because a heartbeat reports it; a member silent for longer counts as silent.
int64_t LateMs(const StatusReply& status);

// The waits among the members.
//
// Invariant: an edge (a, b) says that `a` reported to wait for `b`, and that `b` is a member and
// has not reached the same point itself.
class WaitGraph {
 public:
  // Takes the edges from the status. A silent member has no edges, because its state is unknown.
  explicit WaitGraph(const StatusReply& status);

  size_t size() const { return edges_.size(); }
  const std::set<size_t>& of(size_t member) const { return edges_[member]; }
  bool is_silent(size_t member) const { return silent_[member]; }
  // Is true for a member in a call of a collective that all members it names have reached.
  bool in_full_group(size_t member) const { return full_group_[member]; }
  // Is true if another member waits for it.
  bool is_awaited(size_t member) const;
  // Returns the members at the ends of the chains that begin at `from`; they wait for no member.
  std::set<size_t> EndsFrom(const std::set<size_t>& from) const;
  // Is true if another member has waited for it for longer than LateMs().
  bool is_overdue(size_t member) const;
  // Returns the members reachable from `from` that are in a circle of waits longer than LateMs().
  std::set<size_t> CirclesFrom(const std::set<size_t>& from) const;
  // Returns the members that wait for one of `causes`, directly or through others.
  std::set<size_t> WaitFor(const std::set<size_t>& causes) const;

 private:
  using Edges = std::vector<std::set<size_t>>;
  static std::set<size_t> Reached(const Edges& edges,
                                  const std::set<size_t>& from);  // Includes `from`.

  Edges edges_, overdue_;  // All edges, and those whose wait is longer than LateMs().
  std::vector<bool> silent_, full_group_;
};

}  // namespace hdps
