// Schedules the streams of all devices of a process.
#pragma once

#include <cuda_runtime.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda_on_cpu/stand_in.h"

namespace cuda_on_cpu {

// Work on a stream. It returns false if it cannot run yet, because another stream must run first.
using Work = std::function<bool()>;

struct Event {
  uint64_t recorded = 0, done = 0;  // Number of records, and of records that are done.
  Stream* stream = nullptr;         // Stream of the last record.
  bool timed = false;
  int64_t done_ns = 0;    // When it was last done, by the host's clock.
  bool captured = false;  // The last record was captured into a graph.
};

// One node of a graph. `check` verifies the addresses it uses.
struct Node {
  cudaGraphNodeType type;
  Work work;
  std::function<void()> check;
};

struct Stream {
  int device = 0;
  // It waits for the legacy stream, and the legacy stream waits for it.
  bool blocking = false;
  std::deque<Work> work;
  Graph* capture = nullptr;  // Graph that takes the work instead.
};

// ---- graphs.cc. A call that is forbidden in a capture invalidates the capture.
//
// Returns cudaSuccess if this thread has no capture.
cudaError_t ForbiddenInCapture();
cudaError_t Invalidate(Stream* stream, cudaError_t error);
void AddNode(Stream* stream, Node node);

// Prints the mistake and ends the program.
[[noreturn]] void Fail(const std::string& what);

// Executes the work of streams.
//
// Invariant: work is done as late as possible: when somebody waits for it, one piece at a time,
// under one lock. The seed decides which stream is next.
class Engine {
 public:
  static Engine& Get();

  std::unique_lock<std::mutex> Lock() { return std::unique_lock(mutex_); }
  Stream* NewStream(bool blocking);
  void EndStream(Stream* stream);
  void Add(Stream* stream, Work work);
  // Adds the node to the graph if the stream is captured, else its work to the stream.
  void Add(Stream* stream, Node node);
  // Works until `done` is true, with `stream` first.
  void WorkUntil(std::unique_lock<std::mutex>& lock, Stream* stream,
                 const std::function<bool()>& done);
  // Does one piece of work, of `stream` if it has any. If there is none, waits a little for another
  // thread to add some.
  void WorkABit(std::unique_lock<std::mutex>& lock, Stream* stream);
  // Does all work of the current device; with `blocking_only`, of the streams that wait for the
  // legacy stream.
  void WorkOff(std::unique_lock<std::mutex>& lock, bool blocking_only);
  // Wakes the threads that wait for work.
  void Notify() { changed_.notify_all(); }
  std::mt19937_64& random() { return random_; }

  Counters counters;
  int devices = 1;
  size_t device_bytes = size_t{4} << 30;
  bool refuse_epilogues = false, refuse_graphs = false;

 private:
  bool WorkOnce(Stream* first);
  bool WorkOn(Stream* stream);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937_64 random_{1};
  std::set<Stream*> streams_;
};

int CurrentDevice();

// ---- device_memory.cc: memory of devices. The host can touch it only while they work.
bool OnDevice(const void* data);
bool Pinned(const void* data);
class DeviceAtWork {  // Makes device memory accessible while it lives. Requires: the engine's lock.
 public:
  DeviceAtWork();
  ~DeviceAtWork();
};
// Fails if a kernel wrote behind the end of an allocation.
void CheckRedzones();

// ---- blocks.cc
void RunGrid(dim3 grid, unsigned block, const std::function<void()>& thread);

}  // namespace cuda_on_cpu
