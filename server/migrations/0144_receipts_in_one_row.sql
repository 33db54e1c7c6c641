-- A receipt of a little over two kilobytes stays in its row: moved out, it is a second row with an index of its own.
alter table receipts set (toast_tuple_target = 8160);
