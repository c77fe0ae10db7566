// Runs blocks and threads in an order drawn from the seed. Threads that wait for each other get a
// fiber each; threads that never wait run one after the other in a single fiber.
#include <cuda_runtime.h>
#include <ucontext.h>

#include <memory>
#include <numeric>
#include <vector>

#include "tests/cuda_on_cpu/engine.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace cuda_on_cpu {

thread_local ThreadIds ids;

namespace {

constexpr size_t kStackBytes = 128 << 10;

#if defined(__SANITIZE_ADDRESS__)
void BeginSwitch(void** fake, const void* bottom, size_t size) {
  __sanitizer_start_switch_fiber(fake, bottom, size);
}
void EndSwitch(void* fake, const void** bottom, size_t* size) {
  __sanitizer_finish_switch_fiber(fake, bottom, size);
}
#else
void BeginSwitch(void**, const void*, size_t) {}
void EndSwitch(void*, const void**, size_t*) {}
#endif

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  void* fake = nullptr;
  ThreadIds at;        // Thread indexes while it waits.
  bool waits = false;  // Waits for the others of its block.
};

// The block that this host thread runs.
struct Block {
  const std::function<void()>* thread = nullptr;
  std::vector<unsigned> order;
  size_t next = 0;  // Index into the order.
  ThreadIds first;
  ucontext_t main;
  void* main_fake = nullptr;
  const void* main_bottom = nullptr;
  size_t main_size = 0;
  Fiber* fiber = nullptr;  // The running fiber.
};
thread_local Block* block = nullptr;
thread_local std::vector<std::unique_ptr<Fiber>> spare;

// Runs threads that have not begun, on a fiber.
void RunThreads() {
  EndSwitch(nullptr, &block->main_bottom, &block->main_size);
  while (block->next < block->order.size()) {
    ids = block->first;
    ids.thread = dim3(block->order[block->next++]);
    (*block->thread)();
  }
  BeginSwitch(nullptr, block->main_bottom, block->main_size);  // Its stack is not used again.
  setcontext(&block->main);
}

void SwitchTo(Fiber* fiber) {
  block->fiber = fiber;
  BeginSwitch(&block->main_fake, fiber->stack.get(), kStackBytes);
  swapcontext(&block->main, &fiber->context);
  EndSwitch(block->main_fake, nullptr, nullptr);
}

std::unique_ptr<Fiber> NewFiber() {
  std::unique_ptr<Fiber> fiber;
  if (spare.empty()) {
    fiber = std::make_unique<Fiber>();
  } else {
    fiber = std::move(spare.back());
    spare.pop_back();
  }
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.get();
  fiber->context.uc_stack.ss_size = kStackBytes;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, RunThreads, 0);
  return fiber;
}

void RunBlock() {
  std::vector<std::unique_ptr<Fiber>> waiting;
  const auto keep = [&](std::unique_ptr<Fiber> fiber) {
    (fiber->waits ? waiting : spare).push_back(std::move(fiber));
  };
  while (block->next < block->order.size()) {
    std::unique_ptr<Fiber> fiber = NewFiber();
    SwitchTo(fiber.get());
    keep(std::move(fiber));
  }
  while (!waiting.empty()) {  // All threads have arrived.
    std::vector<std::unique_ptr<Fiber>> ready = std::move(waiting);
    waiting.clear();
    std::shuffle(ready.begin(), ready.end(), Engine::Get().random());
    for (std::unique_ptr<Fiber>& fiber : ready) {
      fiber->waits = false;
      ids = fiber->at;
      SwitchTo(fiber.get());
      keep(std::move(fiber));
    }
  }
}

}  // namespace

void RunGrid(dim3 grid, unsigned threads, const std::function<void()>& thread) {
  Block own;
  own.thread = &thread;
  own.order.resize(threads);
  std::iota(own.order.begin(), own.order.end(), 0u);
  std::vector<unsigned> blocks(size_t{grid.x} * grid.y * grid.z);
  std::iota(blocks.begin(), blocks.end(), 0u);
  std::shuffle(blocks.begin(), blocks.end(), Engine::Get().random());
  std::shuffle(own.order.begin(), own.order.end(), Engine::Get().random());
  block = &own;
  for (const unsigned b : blocks) {
    own.first.block = dim3(b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y);
    own.first.block_size = dim3(threads);
    own.first.grid = grid;
    own.next = 0;
    RunBlock();
  }
  block = nullptr;
}

}  // namespace cuda_on_cpu

void __syncthreads() {
  using namespace cuda_on_cpu;
  Fiber* const fiber = block->fiber;
  fiber->waits = true;
  fiber->at = ids;
  BeginSwitch(&fiber->fake, block->main_bottom, block->main_size);
  swapcontext(&fiber->context, &block->main);
  EndSwitch(fiber->fake, &block->main_bottom, &block->main_size);
}
