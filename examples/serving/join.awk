# Gives logged rows their labels: awk -v label=COLUMN -f join.awk LABELS LOG... >ROWS
#
# LABELS has lines "id,row,label" without a header: the id of a request, the number of a row in it
# from 0 on, and the label. LOG is what `hdps serve --log_requests` wrote of a csv job with a header.
# Rows without a label are left out. For cells without commas inside quotes.
BEGIN { FS = OFS = "," }
FILENAME == ARGV[1] { labels[$1, $2] = $3; next }
FNR == 1 {
  for (cell = 1; cell <= NF; cell++) column[$cell] = cell
  if (!told++) print
  next
}
($column["hdps_id"], $column["hdps_row"]) in labels {
  $column[label] = labels[$column["hdps_id"], $column["hdps_row"]]
  print
}
