/** The plugin that fills preferences and texts from JupyterLab's settings and language. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator } from '@jupyterlab/translation';

import { setTranslation } from '../card/i18n';
import { setPreferences } from '../card/preferences';

const ID = 'opencode-jupyter:settings';
/** The domain of the texts' translations, by JupyterLab's convention. */
const DOMAIN = 'opencode_jupyter';

const plugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Settings and language of the tool cards of opencode_jupyter.',
  autoStart: true,
  optional: [ISettingRegistry, ITranslator],
  activate: async (_: JupyterFrontEnd, registry: ISettingRegistry | null, translator: ITranslator | null): Promise<void> => {
    if (translator) {
      setTranslation(translator.load(DOMAIN));
    }
    try {
      const settings = await registry?.load(ID);
      const apply = (): void => setPreferences((settings?.composite ?? {}) as Record<string, unknown>);
      settings?.changed.connect(apply);
      apply();
    } catch (error) {
      console.warn('opencode-jupyter: the settings could not be loaded; the defaults hold', error);
    }
  }
};

export default plugin;
