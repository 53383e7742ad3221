/** Work on many rows in pieces, so that no statement takes long or locks many of them at once. */
import type { RawBuilder } from "kysely";
import type { Db } from "./database";

/** Rows of a piece. */
export const AT_A_TIME = 500;

/** A statement that changes up to `AT_A_TIME` rows and says how many it was. */
export type Piece = RawBuilder<{ readonly changed: number }>;

/** Piece after piece, until one finds fewer rows than it may change. */
export async function inPieces(db: Db, piece: () => Piece): Promise<void> {
  for (;;) {
    const { rows } = await piece().execute(db);
    if ((rows[0]?.changed ?? 0) < AT_A_TIME) return;
  }
}
