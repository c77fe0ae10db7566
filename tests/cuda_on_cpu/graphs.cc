// Captures one stream at a time per thread, as a chain of nodes. Defines the nodes, the calls that
// a capture forbids, and which graph may replace another.
#include <cuda_runtime.h>

#include <utility>
#include <vector>

#include "tests/cuda_on_cpu/engine.h"

namespace cuda_on_cpu {

struct Graph {
  std::vector<Node> nodes;
  bool valid = true;
};
struct Executable {
  std::vector<Node> nodes;
  int device = 0;
};

namespace {

thread_local Stream* captured = nullptr;  // The stream that this thread captures.

}  // namespace

cudaError_t Invalidate(Stream* stream, cudaError_t error) {
  stream->capture->valid = false;
  return error;
}

cudaError_t ForbiddenInCapture() {
  return captured == nullptr ? cudaSuccess
                             : Invalidate(captured, cudaErrorStreamCaptureUnsupported);
}

void AddNode(Stream* stream, Node node) {
  if (stream->device != CurrentDevice()) Fail("work given to a stream of another device");
  stream->capture->nodes.push_back(std::move(node));
}

void RefuseGraphs(bool refuse) {
  const auto lock = Engine::Get().Lock();
  Engine::Get().refuse_graphs = refuse;
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream == nullptr || Engine::Get().refuse_graphs) return cudaErrorStreamCaptureUnsupported;
  if (captured != nullptr) Fail("two captures of a thread are not modelled");
  stream->capture = new Graph();
  captured = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (stream->capture == nullptr) return cudaErrorInvalidValue;
  if (stream != captured) Fail("a capture is ended by another thread");
  captured = nullptr;
  *graph = std::exchange(stream->capture, nullptr);
  if ((*graph)->valid) return cudaSuccess;
  delete std::exchange(*graph, nullptr);
  return cudaErrorStreamCaptureInvalidated;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes == nullptr) {
    *count = graph->nodes.size();
    return cudaSuccess;
  }
  *count = std::min(*count, graph->nodes.size());
  for (size_t i = 0; i < *count; ++i) nodes[i] = &graph->nodes[i];
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  *type = node->type;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* whole, cudaGraph_t graph, unsigned long long) {
  if (const cudaError_t error = ForbiddenInCapture(); error != cudaSuccess) return error;
  *whole = new Executable{graph->nodes, CurrentDevice()};
  const auto lock = Engine::Get().Lock();
  ++Engine::Get().counters.graphs_built;
  return cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t whole, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo*) {
  const auto same = [](const Node& a, const Node& b) { return a.type == b.type; };
  if (!std::equal(whole->nodes.begin(), whole->nodes.end(), graph->nodes.begin(),
                  graph->nodes.end(), same)) {
    return cudaErrorGraphExecUpdateFailure;
  }
  whole->nodes = graph->nodes;
  const auto lock = Engine::Get().Lock();
  ++Engine::Get().counters.graph_updates;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t whole, cudaStream_t stream) {
  if (whole->device != CurrentDevice()) Fail("a graph of another device");
  if (stream == nullptr || stream->capture != nullptr) Fail("graphs in a capture, or on no stream");
  {
    const auto lock = Engine::Get().Lock();
    ++Engine::Get().counters.graph_launches;
  }
  for (const Node& node : whole->nodes) {
    node.check();
    Engine::Get().Add(stream, [node] {
      if (!node.work()) return false;
      Engine::Get().counters.in_graphs += node.type == cudaGraphNodeTypeKernel;
      return true;
    });
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t whole) {
  delete whole;
  return cudaSuccess;
}
