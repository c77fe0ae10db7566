// The only file that includes FAISS.
#include "tools/export/vectors/faiss_index.h"

#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/impl/FaissException.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>

#include <cstddef>
#include <memory>

namespace hdps {
namespace {

// Edges of a vector, and how many candidates are held while it is inserted and while a query is
// answered. A reader may set the last one anew.
constexpr int kHnswNeighbors = 32, kHnswInserting = 200, kHnswSearching = 256;

// Appends what FAISS writes to a file, and keeps the first error.
class FileWriter : public faiss::IOWriter {
 public:
  explicit FileWriter(WritableFile& file) : file_(file) {}
  size_t operator()(const void* from, size_t size, size_t items) override {
    status_ = file_.Append({static_cast<const std::byte*>(from), size * items});
    return status_.ok() ? items : 0;  // FAISS throws then.
  }
  const Status& status() const { return status_; }

 private:
  WritableFile& file_;
  Status status_;
};

std::unique_ptr<faiss::Index> NewIndex(ItemIndex kind, int dim) {
  if (kind == ItemIndex::kExact) return std::make_unique<faiss::IndexFlatIP>(dim);
  auto graph =
      std::make_unique<faiss::IndexHNSWFlat>(dim, kHnswNeighbors, faiss::METRIC_INNER_PRODUCT);
  graph->hnsw.efConstruction = kHnswInserting;
  graph->hnsw.efSearch = kHnswSearching;
  return graph;
}

}  // namespace

bool HasFaiss() { return true; }

Status WriteFaissIndex(FileSystem& files, const std::string& path, ItemIndex kind,
                       std::span<const float> vectors, uint32_t dim) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(path));
  FileWriter writer(*file);
  writer.name = path;
  try {
    const std::unique_ptr<faiss::Index> index = NewIndex(kind, static_cast<int>(dim));
    index->add(static_cast<faiss::Index::idx_t>(vectors.size() / dim), vectors.data());
    faiss::write_index(index.get(), &writer);
  } catch (const faiss::FaissException& error) {
    HDPS_RETURN_IF_ERROR(writer.status());
    return {Code::kIoError, path + ": FAISS cannot write the index: " + error.msg};
  }
  HDPS_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace hdps
