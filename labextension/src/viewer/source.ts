/** Where a viewer's rows come from: requests to the kernel. Python's side: `opencode_jupyter/jupyter/spill/`. */

/** Rows fetched at once. */
export const PAGE_ROWS = 400;

/** What is known of a file. */
export interface Extent {
  /** Size of the file. */
  bytes: number;
  /** Bytes from the start whose lines are counted, and the line ends in them. */
  counted: number;
  newlines: number;
  /** Lines of the file; null: not counted to the end yet. */
  total: number | null;
  /** It is still being written. */
  writing: boolean;
  /** Tells it from another file of the same name. */
  file: string;
  /** The line at the place that was asked about; null: not known yet. */
  number?: number | null;
}

/** Rows of a file. */
export interface Page extends Extent {
  /** The number of the first row's line; null: not counted so far. */
  first: number | null;
  lines: string[];
  /** The byte where each row begins. */
  offsets: number[];
  /** Indexes of rows that go on with the line of the row before. */
  inside: number[];
  /** The byte where the next row begins. */
  end: number;
  more: boolean;
  /** Escapes that set the colours which are on where the page begins. */
  style: string;
  /** Hits of a search: row, start and end in its visible text. */
  marks?: [row: number, start: number, end: number][];
}

/** Where a page begins; without any: the last rows. */
export interface Where {
  line?: number;
  at?: number;
  near?: number;
  before?: number;
}

/** How far a search is. */
export interface SearchState {
  /** Lines with hits so far. */
  hits: number;
  scanned: number;
  bytes: number;
  done: boolean;
  /** There were too many hits to go on. */
  full: boolean;
  /** The next line with a hit, and which of the hits it is. */
  found?: number | null;
  place?: number | null;
}

export interface SearchQuery {
  text: string;
  regex: boolean;
  case: boolean;
}

/** A request's content. */
export interface SpillRequest {
  kind: 'page' | 'extent' | 'part' | 'search';
  path: string;
  [more: string]: unknown;
}

/** Sends a request to the kernel; rejected with words for a person. */
export type SendRequest = (request: SpillRequest) => Promise<unknown>;

type Reply<T> = T & { error?: string };

/** One file, as the kernel gives it. Every call is rejected with words for a person. */
export class Source {
  constructor(
    readonly path: string,
    private ask: SendRequest
  ) {}

  /** Sends requests another way from now on: the notebook that the first way went through may be closed. */
  sendBy(ask: SendRequest): void {
    this.ask = ask;
  }

  /** Rows; `search` has its hits marked. The kernel looks for a far line in steps, of which `progress` is told. */
  async page(where: Where, count: number, search: string | undefined, progress: (scanned: number, bytes: number) => boolean): Promise<Page | undefined> {
    for (;;) {
      const reply = await this.request<Page & { scanned?: number }>('page', { ...where, count, search });
      if (reply.scanned === undefined) {
        return reply;
      }
      if (!progress(reply.scanned, reply.bytes)) {
        return undefined;
      }
    }
  }

  /** How large the file is now; `at`: a place whose line's number is wanted. */
  extent(at?: number): Promise<Extent> {
    return this.request<Extent>('extent', { at });
  }

  /** Bytes from `offset` on, and where the next ones begin. */
  async part(offset: number): Promise<{ data: Uint8Array; end: number; bytes: number }> {
    const { data, end, bytes } = await this.request<{ data: string; end: number; bytes: number }>('part', { offset });
    return { data: Uint8Array.from(atob(data), c => c.charCodeAt(0)), end, bytes };
  }

  /** Begins the search `id`; gives the first hit after `line`, if it is there by then. */
  search(id: string, query: SearchQuery, line: number): Promise<SearchState> {
    return this.request<SearchState>('search', { id, ...query, line, direction: 1 });
  }

  /** How far the search `id` is, and its next hit after (or before) `line`. */
  searchState(id: string, line: number, direction: 1 | -1): Promise<SearchState> {
    return this.request<SearchState>('search', { id, line, direction });
  }

  /** Ends the search `id`. */
  async stop(id: string): Promise<void> {
    await this.request('search', { id, stop: true });
  }

  private async request<T>(kind: SpillRequest['kind'], more: object): Promise<T> {
    const reply = (await this.ask({ kind, path: this.path, ...more })) as Reply<T>;
    if (reply.error !== undefined) {
      throw new Error(reply.error);
    }
    return reply;
  }
}
