/** The tools of the kernels of this page, kept for those that can't answer just now. */

import type { Kernel } from '@jupyterlab/services';

import { requestKernel } from '../kernel';
import type { KernelHub, OpenKernel } from '../lab/hub';
import type { EditingRequest, SchemasReply } from './token';

/** A kernel that was late is asked again after so long, so often. */
const AGAIN_MS = 700;
const TIMES = 5;
/** After a cell has run its kernel is asked whether tools have changed, so often at most. */
const LOOK_MS = 2_000;

/** Asks a kernel on its control channel. */
export type Ask = (kernel: Kernel.IKernelConnection, request: EditingRequest) => Promise<unknown>;

export class SchemaStore {
  private readonly kept = new Map<string, SchemasReply>();
  private readonly asking = new Set<string>();
  private readonly watched = new WeakSet<object>();
  private last: SchemasReply | undefined;

  /** @param ask - for tests; the control channel otherwise. */
  constructor(
    private readonly hub: Pick<KernelHub, 'kernels' | 'changed'>,
    private readonly ask: Ask = requestKernel
  ) {
    hub.changed.connect((_, { kernelId, topics }) => {
      if (topics.includes('tools')) {
        void this.refresh(kernelId);
      }
    });
    for (const { id } of hub.kernels()) {
      void this.refresh(id);
    }
  }

  /** The kernel with that id, if it has our extension. */
  kernel(id: string | undefined): OpenKernel | undefined {
    return id ? this.hub.kernels().find(kernel => kernel.id === id) : undefined;
  }

  /** Its tools; of a kernel that is not there yet (`onItsWay`), those of the one heard last. */
  of(id: string | undefined, onItsWay = false): SchemasReply | undefined {
    return (id ? this.kept.get(id) : undefined) ?? (onItsWay || this.kernel(id) ? this.last : undefined);
  }

  /** Brings a kernel's tools up to date. */
  async refresh(id: string): Promise<void> {
    const connection = this.kernel(id)?.connection;
    if (!connection) {
      this.kept.delete(id);
      return;
    }
    this.watch(connection);
    if (this.asking.has(id)) {
      return;
    }
    this.asking.add(id);
    try {
      for (let time = 0; time < TIMES; time++) {
        const reply = (await this.ask(connection, { kind: 'schemas', revision: this.kept.get(id)?.revision })) as Partial<
          SchemasReply & { late: boolean }
        >;
        if (Array.isArray(reply.tools)) {
          this.last = reply as SchemasReply;
          this.kept.set(id, this.last);
        }
        if (!reply.late) {
          break;
        }
        await new Promise(resolve => setTimeout(resolve, AGAIN_MS));
      }
    } catch {
      // the kernel went away, or has an older version of our extension
    } finally {
      this.asking.delete(id);
    }
  }

  /** A cell may define tools, so the kernel is asked when one is over; not at `idle`, which our own question ends with. */
  private watch(connection: Kernel.IKernelConnection): void {
    if (this.watched.has(connection)) {
      return;
    }
    this.watched.add(connection);
    let timer: ReturnType<typeof setTimeout> | undefined;
    connection.anyMessage?.connect((_, { msg, direction }) => {
      if (direction === 'recv' && msg.header.msg_type === 'execute_reply') {
        timer ??= setTimeout(() => {
          timer = undefined;
          void this.refresh(connection.id);
        }, LOOK_MS);
      }
    });
  }
}
