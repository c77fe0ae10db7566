// Instantiates the loops over rows with 16-bit weights.
#include "embedding/memory/row_loops.h"

namespace hdps {

template void ReadRowsIn<WeightFormat::kFp16>(VectorWidth, const RowReading&);
template void ReadRowsIn<WeightFormat::kBf16>(VectorWidth, const RowReading&);
template void UpdateRowsIn<WeightFormat::kFp16>(VectorWidth, const RowUpdating&);
template void UpdateRowsIn<WeightFormat::kBf16>(VectorWidth, const RowUpdating&);

}  // namespace hdps
