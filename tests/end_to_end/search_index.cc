// Asks an index of FAISS for the nearest items of vectors. `search_index FILE K` reads vectors of
// floats from its input and prints a line with K ids for each.
#include <faiss/Index.h>
#include <faiss/index_io.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::unique_ptr<faiss::Index> index(faiss::read_index(argv[1]));
  const long k = std::atol(argv[2]);
  std::vector<float> queries, query(static_cast<size_t>(index->d));
  while (std::fread(query.data(), sizeof(float), query.size(), stdin) == query.size()) {
    queries.insert(queries.end(), query.begin(), query.end());
  }
  const auto n = static_cast<long>(queries.size() / query.size());
  std::vector<float> products(static_cast<size_t>(n * k));
  std::vector<faiss::Index::idx_t> ids(products.size());
  index->search(n, queries.data(), k, products.data(), ids.data());
  for (long i = 0; i < n * k; ++i) {
    std::printf("%ld%c", static_cast<long>(ids[static_cast<size_t>(i)]),
                i % k + 1 == k ? '\n' : ' ');
  }
  return 0;
}
