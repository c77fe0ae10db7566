// Tells in how many key lists the rows of one step travel.
#pragma once

#include <cstdint>

namespace hdps {

struct Job;

// The copies of the model (parallel.interleave_num) are dealt out to pieces: copy i of n belongs to
// piece i * pieces / n. A step's keys travel in one list if there is one piece. Otherwise list 0
// has the keys that several pieces use, and the dense rows, and list 1 + p the keys that piece p
// alone uses: its rows may come while earlier pieces are computed, and its gradients may leave
// while later ones are.
inline constexpr uint32_t kPiecesMax = 4;  // More hide little more, and each costs messages.

// Returns the number of pieces of a step. It depends on the job alone, because a server waits for
// the pushes of all lists of a worker. It is 1 without copies; outside of sync mode, where no pull
// waits for a push; with train.micro_batches, whose gradients are added before the copies' are
// complete; and with rows kept at the workers.
uint32_t PiecesOfStep(const Job& job);

// Returns the number of pulls, and of pushes, that a worker sends to a server for one step.
inline uint32_t ListsOfStep(const Job& job) {
  const uint32_t pieces = PiecesOfStep(job);
  return pieces == 1 ? 1 : pieces + 1;
}

}  // namespace hdps
