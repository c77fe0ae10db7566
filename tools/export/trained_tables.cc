// Reads some thousand rows at a time.
#include "tools/export/trained_tables.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/outside_text.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "common/job/vocabulary.h"
#include "kernels/host/half_floats.h"
#include "tools/export/check_rows.h"
#include "worker/data/number.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{1} << 20;  // Of weights, or of texts.
constexpr char kEnding[] = ".safetensors";
constexpr char kTaken[] = "taken";

std::string Shown(const SafeTensor& tensor) {
  std::string text = tensor.dtype + " [";
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.shape[i]);
  }
  return text + "]";
}

Status NotFinite(const TrainedTensors::Tensor& weights, uint64_t row) {
  return {Code::kInvalidArgument, weights.file->path() + ": row " + std::to_string(row) +
                                      " of tensor \"" + EscapeUntrusted(weights.of().name) +
                                      "\" has a number that is not finite; expected weights"};
}

// The rows of one pair of tensors on their way into a table.
struct Source {
  const Job& job;
  TableId table;
  TrainedTensors::Tensor labels;   // The keys or the values.
  TrainedTensors::Tensor weights;  // [n, dim]
  ShardRows* to;                   // Has begun their group.
};

// Calls store(first row, rows [n, dim]) for all rows in order, kBlockBytes at a time.
template <typename StoreRows>
Status ReadRows(const Source& from, const StoreRows& store) {
  const uint64_t rows = from.weights.of().shape[0], dim = from.weights.of().shape[1];
  const uint64_t block_rows = std::max<uint64_t>(1, kBlockBytes / (dim * sizeof(float)));
  std::vector<float> block;
  for (uint64_t first = 0; first < rows; first += block_rows) {
    const uint64_t more = std::min(block_rows, rows - first);
    block.resize(more * dim);
    HDPS_RETURN_IF_ERROR(from.weights.ReadFloats(first * dim, block));
    const size_t bad =
        FirstNotFinite(DType::kFp32, std::as_bytes(std::span(block)).data(), block.size());
    if (bad < block.size()) return NotFinite(from.weights, first + bad / dim);
    HDPS_RETURN_IF_ERROR(store(first, more, std::span<const float>(block)));
  }
  return {};
}

Result<std::string> TakeByKey(const Source& from) {
  const TableSpec& spec = from.job.tables[from.table.value];
  if (spec.slice_mode == SliceMode::kField) {
    return std::string("begins anew: under field_slice a key has no shard; give values");
  }
  const uint64_t rows = from.weights.of().shape[0];
  const SafeTensor& keys_of = from.labels.of();
  if ((keys_of.dtype != "I64" && keys_of.dtype != "U64") ||
      keys_of.shape != std::vector<uint64_t>{rows}) {
    return Status(Code::kInvalidArgument, from.labels.file->path() + ": tensor \"" +
                                              EscapeUntrusted(keys_of.name) + "\" is " +
                                              Shown(keys_of) + ": expected I64 [" +
                                              std::to_string(rows) + "], a key for each row");
  }
  std::vector<Key> keys;
  const Status read =
      ReadRows(from, [&](uint64_t first, uint64_t more, std::span<const float> block) -> Status {
        keys.resize(more);
        HDPS_RETURN_IF_ERROR(from.labels.file->Read(*from.labels.entry, first * sizeof(Key),
                                                    std::as_writable_bytes(std::span(keys))));
        return from.to->Append(keys, block);
      });
  HDPS_RETURN_IF_ERROR(read);
  return std::string(kTaken);
}

// Makes the keys of a feature's values.
class ValueKeys {
 public:
  // Errors: kInvalidArgument if values of the feature have no texts.
  static Result<ValueKeys> Of(const Job& job, const std::string& feature) {
    ValueKeys keys(job.data, feature);
    for (const FeatureSpec& derived : job.data.features) {
      if (derived.name != feature || derived.kind != FeatureKind::kCrossed) continue;
      return Status(Code::kInvalidArgument,
                    "\"" + feature +
                        "\" is crossed of other features, so its values have no "
                        "texts; give the rows by their keys");
    }
    return keys;
  }
  // Returns none if the value is no id, or has no key of its own.
  std::optional<Key> operator()(std::string_view value) const {
    if (vocab_size_ > 0) {
      const std::optional<uint64_t> id = ParseId(value);
      return id && *id < vocab_size_ ? std::optional(IdKey(salt_, *id)) : std::nullopt;
    }
    const Key key = FeatureKey(salt_, value);
    return values_ == nullptr || values_->Has(key) ? std::optional(key) : std::nullopt;
  }

 private:
  ValueKeys(const DataSpec& data, const std::string& feature) : salt_(HashString(feature)) {
    const std::vector<std::string> spaces = KeySpacesOf(data);
    const auto column = std::ranges::find(data.columns, feature, &ColumnSpec::name);
    if (HasNamedColumns(data.format) && column != data.columns.end()) {
      salt_ = HashString(column->key_space());
      vocab_size_ = column->vocab_size;
    }
    if (std::ranges::find(data.features, feature, &FeatureSpec::name) == data.features.end()) {
      values_ = data.vocabulary.values;
    }
  }
  uint64_t salt_, vocab_size_ = 0;
  std::shared_ptr<const Vocabulary> values_;  // Null: every value has a key of its own.
};

// The texts of a tensor, each ended by a newline.
//
// Invariant: memory is kBlockBytes and that of the longest text.
class ValueTexts {
 public:
  // Errors: kInvalidArgument if there are not as many as `rows`.
  static Result<ValueTexts> Of(const TrainedTensors::Tensor& values, uint64_t rows) {
    ValueTexts texts(values);
    uint64_t lines = 0;
    bool ended = true;
    while (texts.read_ < values.entry->bytes) {
      HDPS_RETURN_IF_ERROR(texts.ReadMore());
      lines += static_cast<uint64_t>(std::ranges::count(texts.block_, '\n'));
      ended = texts.block_.back() == '\n';
      texts.block_.clear();
    }
    if (values.of().dtype == "U8" && lines == rows && ended) return ValueTexts(values);
    return Status(Code::kInvalidArgument,
                  values.file->path() + ": tensor \"" + EscapeUntrusted(values.of().name) +
                      "\" is " + Shown(values.of()) + " with " + std::to_string(lines) +
                      " newlines: expected U8, the texts of " + std::to_string(rows) +
                      " values, each ended by a newline");
  }
  // Returns the next text, until the next call. Requires: there is one.
  Result<std::string_view> Next() {
    size_t end = block_.find('\n', at_);
    while (end == std::string::npos) {
      if (read_ == values_.entry->bytes) {
        return Status(Code::kIoError, values_.file->path() + ": it changes while it is read");
      }
      block_.erase(0, at_);
      at_ = 0;
      const size_t before = block_.size();
      HDPS_RETURN_IF_ERROR(ReadMore());
      end = block_.find('\n', before);
    }
    const std::string_view text = std::string_view(block_).substr(at_, end - at_);
    at_ = end + 1;
    return text;
  }

 private:
  explicit ValueTexts(const TrainedTensors::Tensor& values) : values_(values) {}
  // Appends bytes of the tensor to block_.
  Status ReadMore() {
    const size_t before = block_.size();
    block_.resize(before + std::min(kBlockBytes, values_.entry->bytes - read_));
    const auto more = std::as_writable_bytes(std::span(block_).subspan(before));
    HDPS_RETURN_IF_ERROR(values_.file->Read(*values_.entry, read_, more));
    read_ += more.size();
    return {};
  }

  TrainedTensors::Tensor values_;
  uint64_t read_ = 0;  // Bytes of the tensor so far.
  std::string block_;
  size_t at_ = 0;  // Where the next text begins in block_.
};

Result<std::string> TakeByValue(const Source& from, const std::string& feature) {
  const TableSpec& spec = from.job.tables[from.table.value];
  HDPS_ASSIGN_OR_RETURN(const ValueKeys key_of, ValueKeys::Of(from.job, feature));
  HDPS_ASSIGN_OR_RETURN(ValueTexts texts, ValueTexts::Of(from.labels, from.weights.of().shape[0]));
  std::optional<uint32_t> shard;
  if (spec.slice_mode == SliceMode::kField) {
    const std::vector<uint32_t> features = FeaturesOfTable(from.job, spec.name);
    const std::vector<std::string> names = FeaturesOf(from.job.data).sparse;
    const std::vector<uint32_t> shards = FieldShards(from.job, spec, features);
    for (size_t f = 0; f < features.size(); ++f) {
      if (names[features[f]] == feature) shard = shards[f];
    }
  }
  std::vector<Key> keys;
  std::vector<float> rows;
  uint64_t without = 0;
  const Status read =
      ReadRows(from, [&](uint64_t, uint64_t more, std::span<const float> block) -> Status {
        keys.clear();
        rows.clear();
        for (uint64_t r = 0; r < more; ++r) {
          HDPS_ASSIGN_OR_RETURN(const std::string_view text, texts.Next());
          const std::optional<Key> key = key_of(text);
          if (!key) ++without;
          if (!key) continue;
          keys.push_back(*key);
          const auto row = block.subspan(r * spec.dim, spec.dim);
          rows.insert(rows.end(), row.begin(), row.end());
        }
        return from.to->Append(keys, rows, shard);
      });
  HDPS_RETURN_IF_ERROR(read);
  if (without == 0) return std::string(kTaken);
  return kTaken + (" but for " + std::to_string(without)) +
         " values without a key of their own in this job";
}

// Takes the pair `name`.weights and its keys or values; no line if there are no such weights.
Result<std::vector<TakenTensor>> TakePair(const Job& job, TableId table, const std::string& feature,
                                          TrainedTensors* tensors, ShardRows* rows) {
  const TableSpec& spec = job.tables[table.value];
  const std::string name = spec.name + (feature.empty() ? "" : "." + feature);
  const TrainedTensors::Tensor* const weights = tensors->Use(name + ".weights");
  if (weights == nullptr) return std::vector<TakenTensor>();
  TakenTensor line{{name, "dim " + std::to_string(spec.dim), Shown(weights->of()), "", false}};
  const std::string labels_name = name + (feature.empty() ? ".keys" : ".values");
  const TrainedTensors::Tensor* const labels = tensors->Use(labels_name);
  if (labels == nullptr) {
    line.result = "no tensor " + labels_name + ": begins anew";
  } else if (!weights->real() || weights->of().shape.size() != 2 ||
             weights->of().shape[1] != spec.dim) {
    line.result = "another form: begins anew";
  } else {
    HDPS_ASSIGN_OR_RETURN(line.group, rows->BeginGroup(table));
    const Source from{job, table, *labels, *weights, rows};
    HDPS_ASSIGN_OR_RETURN(line.result,
                          feature.empty() ? TakeByKey(from) : TakeByValue(from, feature));
    line.taken = line.result.starts_with(kTaken);
  }
  return std::vector<TakenTensor>{line};
}

}  // namespace

bool IsTensorFile(const std::string& name) { return name.ends_with(kEnding) && name != kCheckFile; }

Result<TrainedTensors> TrainedTensors::Open(FileSystem& files, const std::string& folder) {
  const Result<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) {
    return Status(Code::kInvalidArgument,
                  "--init=" + folder +
                      ": there is no such folder; expected one of hdps export "
                      "--format=safetensors, or with such files");
  }
  TrainedTensors opened;
  for (const std::string& name : *names) {
    if (!IsTensorFile(name)) continue;
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file,
                          SafetensorsFile::Open(files, JoinPath(folder, name)));
    for (const SafetensorsFile::Entry& entry : file->entries()) {
      const auto [at, added] = opened.tensors_.emplace(entry.tensor.name, Tensor{});
      if (!added) {
        return Status(Code::kInvalidArgument,
                      file->path() + ": tensor \"" + EscapeUntrusted(entry.tensor.name) +
                          "\" is in " + at->second.file->path() + " too; expected it once");
      }
      at->second = {file.get(), &entry};
    }
    opened.files_.push_back(std::move(file));
  }
  if (!opened.files_.empty()) return opened;
  return Status(Code::kInvalidArgument,
                "--init=" + folder + ": there is no file *" + kEnding +
                    " in it; expected a folder of hdps export --format=safetensors");
}

const TrainedTensors::Tensor* TrainedTensors::Use(const std::string& name) {
  const auto at = tensors_.find(name);
  if (at == tensors_.end()) return nullptr;
  used_.insert(name);
  return &at->second;
}

std::vector<std::string> TrainedTensors::Unused() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) {
    if (!used_.contains(name)) names.push_back(name);
  }
  return names;
}

bool TrainedTensors::Tensor::real() const {
  return of().dtype == "F32" || of().dtype == "F16" || of().dtype == "BF16";
}

Status TrainedTensors::Tensor::ReadFloats(uint64_t first, std::span<float> numbers) const {
  const DType format = of().dtype == "F32"   ? DType::kFp32
                       : of().dtype == "F16" ? DType::kFp16
                                             : DType::kBf16;
  const uint64_t each = FloatBytes(format);
  if (format == DType::kFp32) {
    return file->Read(*entry, first * each, std::as_writable_bytes(numbers));
  }
  std::vector<uint16_t> halves(numbers.size());
  HDPS_RETURN_IF_ERROR(file->Read(*entry, first * each, std::as_writable_bytes(std::span(halves))));
  WidenFloats(WidestVectors(), format, std::as_bytes(std::span(halves)).data(), numbers);
  return {};
}

Result<std::vector<TakenTensor>> TakeTable(const Job& job, TableId table, TrainedTensors* tensors,
                                           ShardRows* rows) {
  const TableSpec& spec = job.tables[table.value];
  HDPS_ASSIGN_OR_RETURN(std::vector<TakenTensor> lines, TakePair(job, table, "", tensors, rows));
  const std::vector<std::string> features = FeaturesOf(job.data).sparse;
  for (const uint32_t feature : FeaturesOfTable(job, spec.name)) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<TakenTensor> of_feature,
                          TakePair(job, table, features[feature], tensors, rows));
    lines.insert(lines.end(), of_feature.begin(), of_feature.end());
  }
  if (lines.empty()) {
    lines.push_back(
        {{spec.name, "dim " + std::to_string(spec.dim), "-", "not there: begins anew", false}});
  }
  return lines;
}

Result<std::vector<TakenTensor>> TakeDense(const std::vector<DenseTensor>& model,
                                           TrainedTensors* tensors, std::span<float> flat) {
  std::vector<TakenTensor> lines;
  for (const DenseTensor& tensor : model) {
    const SafeTensor wanted{tensor.name, "F32",
                            std::vector<uint64_t>(tensor.shape.begin(), tensor.shape.end())};
    TakenTensor line{{tensor.name, Shown(wanted), "-", "not there: begins anew", false}};
    const TrainedTensors::Tensor* const found = tensors->Use(tensor.name);
    if (found != nullptr) {
      line.of_source = Shown(found->of());
      line.taken = found->real() && found->of().shape == wanted.shape;
      line.result = line.taken ? "taken" : "another form: begins anew";
    }
    if (line.taken) {
      const std::span<float> to =
          flat.subspan(tensor.first_chunk * kDenseChunkFloats, tensor.size());
      HDPS_RETURN_IF_ERROR(found->ReadFloats(0, to));
      const size_t bad =
          FirstNotFinite(DType::kFp32, std::as_bytes(std::span<const float>(to)).data(), to.size());
      if (bad < to.size())
        return NotFinite(*found, bad / std::max<uint64_t>(1, wanted.shape.back()));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace hdps
